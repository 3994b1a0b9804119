import type { ByteReader, ByteWriter } from '../../core/bytes.ts';
import type { KeyedChange } from './effects.ts';
import { Ledger } from './ledger.ts';

/** Slot 0 would be the log's own offsets; 511 is the last one whose lane offsets are below 2^53. */
export const slotsMax = 511;

/** All ledgers of the tenant: one for each group and topic in keyed delivery. */
export class KeyedTable {
  readonly #ledgers = new Map<string, Ledger>();
  readonly #byGroup = new Map<string, Map<string, Ledger>>();
  readonly #byTopic = new Map<string, Map<number, Ledger>>();
  #laneBaseMin = 0;

  /**
   * Above every lane number that a ledger used which is gone now. A ledger that is opened begins
   * there: its slot may be that of a former one, even of a topic or group of the same name, and a
   * client of that one may still ask with its numbers.
   */
  get laneBaseMin(): number {
    return this.#laneBaseMin;
  }

  get size(): number {
    return this.#ledgers.size;
  }

  get(groupId: string, topicId: string): Ledger | undefined {
    return this.#ledgers.get(ledgerKey(groupId, topicId));
  }

  bySlot(topicId: string, slot: number): Ledger | undefined {
    return this.#byTopic.get(topicId)?.get(slot);
  }

  ofGroup(groupId: string): Iterable<Ledger> {
    return this.#byGroup.get(groupId)?.values() ?? [];
  }

  ofTopic(topicId: string): Iterable<Ledger> {
    return this.#byTopic.get(topicId)?.values() ?? [];
  }

  /** Ids of the groups that have a ledger. */
  groups(): Iterable<string> {
    return this.#byGroup.keys();
  }

  /** The lowest slot of the topic that no group has. */
  freeSlot(topicId: string): number | undefined {
    const taken = this.#byTopic.get(topicId);
    for (let slot = 1; slot <= slotsMax; slot++) {
      if (taken?.has(slot) !== true) return slot;
    }
    return undefined;
  }

  /** An effect on a ledger that is not there is void, and so is opening one in a place taken. */
  apply({ groupId, topicId, effects }: KeyedChange): void {
    for (const effect of effects) {
      const ledger = this.get(groupId, topicId);
      if (effect.kind === 'opened') {
        const isFree = ledger === undefined && this.bySlot(topicId, effect.slot) === undefined;
        if (isFree) this.#put(Ledger.open(groupId, topicId, effect));
      } else if (ledger === undefined) {
      } else if (effect.kind === 'closed') {
        this.#remove(ledger);
      } else {
        ledger.apply(effect);
      }
    }
  }

  removeGroup(groupId: string): void {
    for (const ledger of [...this.ofGroup(groupId)]) this.#remove(ledger);
  }

  removeTopic(topicId: string): void {
    for (const ledger of [...this.ofTopic(topicId)]) this.#remove(ledger);
  }

  #put(ledger: Ledger): void {
    const { groupId, topicId, slot } = ledger;
    this.#ledgers.set(ledgerKey(groupId, topicId), ledger);
    mapOf(this.#byGroup, groupId).set(topicId, ledger);
    mapOf(this.#byTopic, topicId).set(slot, ledger);
  }

  #remove(ledger: Ledger): void {
    const { groupId, topicId, slot } = ledger;
    this.#laneBaseMin = Math.max(this.#laneBaseMin, ledger.laneEnd);
    this.#ledgers.delete(ledgerKey(groupId, topicId));
    removeFrom(this.#byGroup, groupId, topicId);
    removeFrom(this.#byTopic, topicId, slot);
  }

  /** Names of the image cells, one a ledger. */
  keys(): Iterable<string> {
    return this.#ledgers.keys();
  }

  writeLedger(writer: ByteWriter, key: string): void {
    this.#ledgers.get(key)!.write(writer);
  }

  readLedger(reader: ByteReader): void {
    this.#put(Ledger.read(reader));
  }

  restoreLaneBaseMin(laneBaseMin: number): void {
    this.#laneBaseMin = laneBaseMin;
  }
}

/** Topic ids are of one length, so no two pairs have the same key. */
export function ledgerKey(groupId: string, topicId: string): string {
  return topicId + groupId;
}

function mapOf<K, L, V>(all: Map<K, Map<L, V>>, key: K): Map<L, V> {
  const known = all.get(key);
  if (known !== undefined) return known;
  const made = new Map<L, V>();
  all.set(key, made);
  return made;
}

function removeFrom<K, L>(all: Map<K, Map<L, unknown>>, key: K, name: L): void {
  const some = all.get(key)!;
  some.delete(name);
  if (some.size === 0) all.delete(key);
}
