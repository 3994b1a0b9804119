import { ByteReader, ByteWriter } from '../core/bytes.ts';
import { BrokerError } from '../core/errors.ts';
import type { StateMachine } from './state-machine.ts';

/**
 * The image of the state machine, for snapshots: a header, then cells in any order.
 *
 *   image  = u8 version | uvarint appliedIndex | uvarint appliedTerm | cell*
 *   cell   = u8 kind | what the table writes
 *
 * An image is written in slices while entries go on being applied: before an entry changes a cell
 * that is not written yet, the cell is written as it is (copy on write). So the image is that of
 * the moment at which it was begun, and no turn of the loop is long.
 */

/**
 * Since version 2 the facts end with the overrides of single nodes, since version 3 with the least
 * lane base of new ledgers, since version 4 with the members of the group and their nodes, since
 * version 5 with the feature level and the nodes that may join, since version 6 with the tenants.
 */
export const imageVersionMax = 6;

export const Cell = {
  facts: 1,
  topic: 2,
  partitionPage: 3,
  producers: 4,
  offsets: 5,
  group: 6,
  ledger: 7,
} as const;

/** About this much is written in one slice. */
const sliceBytes = 256 * 1024;

export class ImageWriter {
  readonly #state: StateMachine;
  readonly #topics: Set<string>;
  readonly #pages: Set<number>;
  readonly #producers: Set<number>;
  readonly #offsets: Set<string>;
  readonly #groups: Set<string>;
  readonly #ledgers: Set<string>;
  #writer = new ByteWriter(sliceBytes);
  readonly #chunks: Buffer[] = [];

  /** Begins an image of the present state. `sorted` makes equal states give equal bytes. */
  constructor(state: StateMachine, sorted = false) {
    this.#state = state;
    this.#topics = keys(state.topics.ids(), sorted);
    this.#pages = keys(state.topics.partitions.pages(), sorted);
    this.#producers = keys(state.producers.partitions(), sorted);
    this.#offsets = keys(state.offsets.groups(), sorted);
    this.#groups = keys(state.groupImages.keys(), sorted);
    this.#ledgers = keys(state.keyed.keys(), sorted);
    this.#writer.u8(state.imageVersion).uvarint(state.appliedIndex).uvarint(state.appliedTerm);
    this.#writer.u8(Cell.facts);
    state.writeFacts(this.#writer);
  }

  /** Writes some cells; answers whether there are more. */
  writeSlice(): boolean {
    const writer = this.#writer;
    const isFull = (): boolean => writer.length >= sliceBytes;
    for (const id of this.#topics) {
      if (isFull()) break;
      this.touchTopic(id);
    }
    for (const page of this.#pages) {
      if (isFull()) break;
      this.touchPage(page);
    }
    for (const partition of this.#producers) {
      if (isFull()) break;
      this.touchProducers(partition);
    }
    for (const groupId of this.#offsets) {
      if (isFull()) break;
      this.touchOffsets(groupId);
    }
    for (const groupId of this.#groups) {
      if (isFull()) break;
      this.touchGroup(groupId);
    }
    for (const key of this.#ledgers) {
      if (isFull()) break;
      this.touchLedger(key);
    }
    this.#chunks.push(writer.finish());
    this.#writer = new ByteWriter(sliceBytes);
    return this.#isPending;
  }

  /** The whole image; only after `writeSlice` answered false. */
  finish(): Buffer {
    return Buffer.concat([...this.#chunks, this.#writer.finish()]);
  }

  touchTopic(topicId: string): void {
    if (!this.#topics.delete(topicId)) return;
    this.#state.topics.writeTopic(this.#writer.u8(Cell.topic), topicId);
  }

  touchPage(page: number): void {
    if (!this.#pages.delete(page)) return;
    this.#state.topics.partitions.writePage(this.#writer.u8(Cell.partitionPage), page);
  }

  touchProducers(partition: number): void {
    if (!this.#producers.delete(partition)) return;
    this.#state.producers.writePartition(this.#writer.u8(Cell.producers), partition);
  }

  touchOffsets(groupId: string): void {
    if (!this.#offsets.delete(groupId)) return;
    this.#state.offsets.writeGroup(this.#writer.u8(Cell.offsets), groupId);
  }

  /** Before anything happens that may change the offsets of any group. */
  touchAllOffsets(): void {
    for (const groupId of this.#offsets) this.touchOffsets(groupId);
  }

  touchGroup(groupId: string): void {
    if (!this.#groups.delete(groupId)) return;
    const image = this.#state.groupImages.get(groupId)!;
    this.#writer.u8(Cell.group).string(groupId).bytes(image);
  }

  /** By `ledgerKey`. */
  touchLedger(key: string): void {
    if (!this.#ledgers.delete(key)) return;
    this.#state.keyed.writeLedger(this.#writer.u8(Cell.ledger), key);
  }

  get #isPending(): boolean {
    const left =
      this.#topics.size +
      this.#pages.size +
      this.#producers.size +
      this.#offsets.size +
      this.#groups.size +
      this.#ledgers.size;
    return left > 0;
  }
}

function keys<K extends string | number>(all: Iterable<K>, sorted: boolean): Set<K> {
  return sorted ? new Set([...all].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))) : new Set(all);
}

/** Restores an image into a fresh state machine; answers its index and term. */
export function readImage(
  image: Buffer,
  state: StateMachine,
): { readonly appliedIndex: number; readonly appliedTerm: number } {
  const reader = new ByteReader(image);
  const version = reader.u8();
  if (version > imageVersionMax) throw unknownVersion(version);
  const applied = { appliedIndex: reader.uvarint(), appliedTerm: reader.uvarint() };
  while (reader.remaining > 0) readCell(reader, state, version);
  return applied;
}

function readCell(reader: ByteReader, state: StateMachine, version: number): void {
  const kind = reader.u8();
  switch (kind) {
    case Cell.facts:
      state.readFacts(reader, version);
      break;
    case Cell.topic:
      state.topics.readTopic(reader);
      break;
    case Cell.partitionPage:
      state.topics.partitions.readPage(reader);
      break;
    case Cell.producers:
      state.producers.readPartition(reader);
      break;
    case Cell.offsets:
      state.offsets.readGroup(reader);
      break;
    case Cell.group:
      state.groupImages.set(reader.string(), Buffer.from(reader.bytes()));
      break;
    case Cell.ledger:
      state.keyed.readLedger(reader);
      break;
    default:
      throw unknownVersion(kind);
  }
}

function unknownVersion(version: number): BrokerError {
  return new BrokerError(
    'JOURNAL_VERSION_UNKNOWN',
    `the snapshot has a part of version ${version}, which this version of Keylane does not know`,
  );
}
