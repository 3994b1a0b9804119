import { assert } from '../../core/assert.ts';
import type { ByteReader, ByteWriter } from '../../core/bytes.ts';
import { type KeyedEffect, readTrial, type Trial, writeTrial } from './effects.ts';
import { FinishedSet } from './finished-set.ts';
import { GrantRuns } from './grant-runs.ts';

/** The lane numbers `[start, end)` that one member got from one lane in one go. */
export interface LedgerRange {
  readonly memberId: string;
  readonly start: number;
  /** The lane's end while the range is its present one. */
  end: number;
  /** Unfinished only. */
  readonly grants: GrantRuns;
}

export interface LedgerLane {
  /** The next lane number. */
  end: number;
  /** Whether the last range has an owner. */
  isOwned: boolean;
  /** Ascending: the last `rangesMax`, and before them those that have unfinished grants. */
  ranges: LedgerRange[];
}

/**
 * The last ranges of a lane are kept, with grants or without: a member that gets its lane back may
 * still ask at the end of its former one. Older ones stay while they have grants.
 */
const rangesMax = 5;

/**
 * The durable side of keyed delivery of one topic to one group. It only applies effects; equal
 * effects give equal ledgers. The leader applies each effect twice: to a ledger of its own when it
 * is planned, and to the one of the state machine when it is durable.
 *
 * A lane is numbered upwards from a base that no number was used above before. A new owner begins
 * one above the end: a Fetch by the former owner still asks at the old end, so the two differ.
 */
export class Ledger {
  readonly groupId: string;
  readonly topicId: string;
  /** 1 to 511, unique within the topic. */
  readonly slot: number;
  readonly laneBase: number;
  readonly lanes = new Map<number, LedgerLane>();
  /** Records with failed deliveries, by `trialKey`. */
  readonly trials = new Map<string, Trial>();
  /** A group that never finished anything leaves no trace when its last member goes. */
  hasFinished = false;
  readonly #finished = new Map<number, FinishedSet>();

  constructor(groupId: string, topicId: string, slot: number, laneBase: number) {
    this.groupId = groupId;
    this.topicId = topicId;
    this.slot = slot;
    this.laneBase = laneBase;
  }

  static open(groupId: string, topicId: string, effect: KeyedEffect & { kind: 'opened' }): Ledger {
    const ledger = new Ledger(groupId, topicId, effect.slot, effect.laneBase);
    for (const [partition, offset] of effect.starts) {
      ledger.#finished.set(partition, new FinishedSet(offset));
    }
    return ledger;
  }

  /** Of a stored partition; one that was added later begins at its first record. */
  finished(partition: number): FinishedSet {
    const known = this.#finished.get(partition);
    if (known !== undefined) return known;
    const made = new FinishedSet(0);
    this.#finished.set(partition, made);
    return made;
  }

  lane(index: number): LedgerLane | undefined {
    return this.lanes.get(index);
  }

  /** The range that a lane's owner gets records in; undefined while it has no owner. */
  present(laneIndex: number): LedgerRange | undefined {
    const lane = this.lanes.get(laneIndex);
    return lane?.isOwned === true ? lane.ranges.at(-1) : undefined;
  }

  /** Above all lane numbers that were ever used here. */
  get laneEnd(): number {
    let end = this.laneBase;
    for (const lane of this.lanes.values()) end = Math.max(end, lane.end);
    return end;
  }

  /** Effects on a lane or range that is not there (any more) are void. */
  apply(effect: KeyedEffect): void {
    switch (effect.kind) {
      case 'rangeOpened':
        this.#openRange(effect.lane, effect.memberId);
        return;
      case 'rangeClosed':
        this.#closeRange(effect.lane);
        return;
      case 'granted':
        this.#grant(effect.lane, effect.runs);
        return;
      case 'finished':
        this.#finish(effect.lane, effect.from, effect.to);
        return;
      case 'returned':
        this.#return(effect.lane, effect.from, effect.to);
        return;
      case 'withdrawn':
        this.#withdraw(effect.lane, effect.from);
        return;
      case 'skipped':
        // A dead letter is something that the group did.
        if (this.trials.has(trialKey(effect.partition, effect.from))) this.hasFinished = true;
        this.finished(effect.partition).addRange(effect.from, effect.to);
        this.#forgetTrials(effect.partition, effect.from, effect.to - effect.from);
        return;
      case 'tried': {
        const { partition, offset, trial } = effect;
        if (trial === null) this.trials.delete(trialKey(partition, offset));
        else if (!this.finished(partition).has(offset)) {
          this.trials.set(trialKey(partition, offset), trial);
        }
        return;
      }
      case 'reset':
        this.finished(effect.partition).reset(effect.offset);
        this.#forgetTrials(effect.partition, 0, Number.POSITIVE_INFINITY);
        this.hasFinished = true;
        return;
      case 'opened':
      case 'closed':
        assert(false, 'ledgers are opened and closed by their table');
    }
  }

  #openRange(index: number, memberId: string): void {
    let lane = this.lanes.get(index);
    if (lane === undefined) {
      lane = { end: this.laneBase, isOwned: false, ranges: [] };
      this.lanes.set(index, lane);
    }
    lane.end++;
    lane.isOwned = true;
    lane.ranges.push({ memberId, start: lane.end, end: lane.end, grants: new GrantRuns() });
    prune(lane);
  }

  #closeRange(index: number): void {
    const lane = this.lanes.get(index);
    if (lane === undefined) return;
    lane.isOwned = false;
  }

  #grant(index: number, runs: readonly number[]): void {
    const range = this.present(index);
    if (range === undefined) return;
    const lane = this.lanes.get(index)!;
    for (let i = 0; i < runs.length; i += 3) {
      range.grants.push(lane.end, runs[i]!, runs[i + 1]!, runs[i + 2]!);
      lane.end += runs[i]!;
    }
    range.end = lane.end;
  }

  #finish(index: number, from: number, to: number): void {
    this.#remove(index, from, to, (_n, count, partition, offset) => {
      this.finished(partition).addRange(offset, offset + count);
      this.#forgetTrials(partition, offset, count);
      this.hasFinished = true;
    });
  }

  #return(index: number, from: number, to: number): void {
    this.#remove(index, from, to, () => undefined);
  }

  #withdraw(index: number, from: number): void {
    const range = this.present(index);
    if (range === undefined || from < range.start || from > range.end) return;
    range.grants.remove(from, range.end, () => undefined);
    range.end = from;
    this.lanes.get(index)!.end = from;
  }

  #remove(
    index: number,
    from: number,
    to: number,
    visit: (n: number, count: number, partition: number, offset: number) => void,
  ): void {
    const lane = this.lanes.get(index);
    if (lane === undefined) return;
    for (const range of lane.ranges) {
      if (range.end > from && range.start < to) range.grants.remove(from, to, visit);
    }
    prune(lane);
  }

  #forgetTrials(partition: number, offset: number, count: number): void {
    if (this.trials.size === 0) return;
    if (count > this.trials.size) {
      for (const key of [...this.trials.keys()]) {
        const [trialPartition, trialOffset] = key.split(':').map(Number);
        const isIn = trialOffset! >= offset && trialOffset! < offset + count;
        if (trialPartition === partition && isIn) this.trials.delete(key);
      }
      return;
    }
    for (let i = 0; i < count; i++) this.trials.delete(trialKey(partition, offset + i));
  }

  write(writer: ByteWriter): void {
    writer.string(this.groupId).raw(Buffer.from(this.topicId, 'hex'));
    writer
      .uvarint(this.slot)
      .uvarint(this.laneBase)
      .u8(this.hasFinished ? 1 : 0);
    // A set that was only looked at is as good as none: looking must not change the image.
    const sets = [...this.#finished].filter(([, { low, above }]) => low > 0 || above > 0);
    sets.sort(([a], [b]) => a - b);
    writer.uvarint(sets.length);
    for (const [partition, finished] of sets) finished.write(writer.uvarint(partition));
    const lanes = [...this.lanes.keys()].sort((a, b) => a - b);
    writer.uvarint(lanes.length);
    for (const index of lanes) this.#writeLane(writer, index);
    const trials = [...this.trials.keys()].sort();
    writer.uvarint(trials.length);
    for (const key of trials) writeTrial(writer.string(key), this.trials.get(key)!);
  }

  #writeLane(writer: ByteWriter, index: number): void {
    const lane = this.lanes.get(index)!;
    writer
      .uvarint(index)
      .uvarint(lane.end)
      .u8(lane.isOwned ? 1 : 0)
      .uvarint(lane.ranges.length);
    for (const range of lane.ranges) {
      writer.string(range.memberId).uvarint(range.start).uvarint(range.end);
      range.grants.write(writer);
    }
  }

  static read(reader: ByteReader): Ledger {
    const groupId = reader.string();
    const topicId = reader.raw(16).toString('hex');
    const ledger = new Ledger(groupId, topicId, reader.uvarint(), reader.uvarint());
    ledger.hasFinished = reader.u8() === 1;
    for (let left = reader.count(3); left > 0; left--) {
      const partition = reader.uvarint();
      ledger.#finished.set(partition, FinishedSet.read(reader));
    }
    for (let left = reader.count(4); left > 0; left--) {
      const index = reader.uvarint();
      const end = reader.uvarint();
      const isOwned = reader.u8() === 1;
      const ranges: LedgerRange[] = [];
      for (let more = reader.count(4); more > 0; more--) {
        const memberId = reader.string();
        const start = reader.uvarint();
        ranges.push({ memberId, start, end: reader.uvarint(), grants: GrantRuns.read(reader) });
      }
      ledger.lanes.set(index, { end, isOwned, ranges });
    }
    for (let left = reader.count(4); left > 0; left--) {
      const key = reader.string();
      ledger.trials.set(key, readTrial(reader));
    }
    return ledger;
  }
}

function prune(lane: LedgerLane): void {
  if (lane.ranges.length <= rangesMax) return;
  const firstKept = lane.ranges.length - rangesMax;
  lane.ranges = lane.ranges.filter(({ grants }, i) => i >= firstKept || grants.records > 0);
}

export function trialKey(partition: number, offset: number): string {
  return `${partition}:${offset}`;
}
