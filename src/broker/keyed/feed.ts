import type { FiledBatch } from '../../groups/keyed/record-store.ts';
import type { StoredEntry } from '../../log/format.ts';
import { ReadPlan } from '../../log/log-reader.ts';
import { isPacked, readBaseOffset, readLastOffset } from '../../protocol/records/batch-header.ts';
import { StoredBatches, unpack } from '../../replica/stored-batches.ts';
import type { Topic } from '../../state/topics.ts';
import type { Broker } from '../broker.ts';
import { fileBatch, type KeyRules } from './ordering-keys.ts';

/**
 * With fewer for the members to get, more are read from the log: enough for several answers. Twice
 * as many take a tenth more time each, since they leave the processor's caches before they are
 * granted.
 */
const stockRecords = 16_384;
/** With so many loaded, what is appended is not taken from memory but read later. */
const readyRecordsMax = 131_072;
/** What is read at a time, over all partitions. */
const readBytesMax = 2 * 1024 * 1024;
const readBytesMin = 16 * 1024;
/** Records that are filed in one turn of the loop: what consumers ask for does not wait long. */
const recordsPerTurn = 512;

export interface FeedTarget {
  /** How far the group is done with a stored partition, whatever is loaded. */
  startOf(partition: number): number;
  /** Behind the last offset that is to be filed. */
  endOf(partition: number): number;
  readonly readyRecords: number;
  /** Whether so many are loaded as members are about to get. */
  isStocked(records: number): boolean;
  /** Records that nobody may get at present are loaded beyond the memory that there is for them. */
  readonly isFull: boolean;
  file(batch: FiledBatch): void;
  /** The log begins here: what was below is gone. */
  onLogStart(partition: number, offset: number): void;
  /** Something was filed, or the feed came to the end of the log. */
  onFiled(): void;
}

/**
 * Brings the batches of one topic to the dispatcher of one group, in the order of the journal, each
 * once: appended ones as they come, older ones from the log as far as there is demand for them.
 */
export class Feed {
  readonly #broker: Broker;
  readonly #topic: Topic;
  readonly #rules: KeyRules;
  readonly #target: FeedTarget;
  /** Stored partition => first offset that was not read yet. */
  readonly #next = new Map<number, number>();
  /** Read and not filed yet, by partition, in order. */
  readonly #read = new Map<number, FiledBatch[]>();
  /** Nothing of the log is left to read: what is appended can be filed at once. */
  #isCaughtUp = false;
  #isReading = false;
  #isStopped = false;
  #damage: { readonly partition: number; readonly offset: number } | undefined;

  constructor(broker: Broker, topic: Topic, rules: KeyRules, target: FeedTarget) {
    this.#broker = broker;
    this.#topic = topic;
    this.#rules = rules;
    this.#target = target;
  }

  /** Records in the log that were not read yet. */
  get backlog(): number {
    if (this.#isCaughtUp) return 0;
    let records = 0;
    for (const partition of this.#topic.partitions) {
      records += Math.max(this.#end(partition) - this.#nextOf(partition), 0);
    }
    return records;
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Reads on, if there is demand. */
  pull(): void {
    if (this.#isReading || this.#isCaughtUp || this.#isStopped || !this.#isWanted) return;
    this.#isReading = true;
    this.#readOn().then(
      () => {
        this.#isReading = false;
      },
      (error: unknown) => this.#broker.fatal(error),
    );
  }

  onApplied(entry: StoredEntry): void {
    if (!this.#isCaughtUp || this.#isStopped) return;
    const { partitions } = this.#broker.replica.state.topics;
    for (let i = 0; i < entry.batches.length; i++) {
      const partition = entry.partitions[i]!;
      if (partitions.topic(partition) !== this.#topic) continue;
      if (this.#target.readyRecords > readyRecordsMax) {
        this.passOver();
        return;
      }
      const batch = entry.batches[i]!;
      const opened = StoredBatches.isLarge(batch) ? null : unpack(batch, this.#broker.codecs);
      if (opened === null) {
        // It takes the thread, or is damaged: it is read as older ones are.
        this.passOver();
        return;
      }
      this.#target.file(this.#filed(batch, opened, partition, entry.positions[i]!));
      this.#next.set(partition, readLastOffset(batch, 0) + 1);
    }
  }

  /** Something was appended that is to be read later. */
  passOver(): void {
    this.#isCaughtUp = false;
  }

  get #isWanted(): boolean {
    const { readyRecords, isFull } = this.#target;
    if (this.#isHeldByDamage || (isFull && readyRecords > 0)) return false;
    return !this.#target.isStocked(stockRecords);
  }

  #end(partition: number): number {
    return this.#target.endOf(partition);
  }

  /** The first offset that was not filed, nor read. */
  nextOf(partition: number): number {
    const [first] = this.#read.get(partition) ?? [];
    return first?.baseOffset ?? this.#nextOf(partition);
  }

  /** Nothing of the log is left to read. */
  get isCaughtUp(): boolean {
    return this.#isCaughtUp;
  }

  #nextOf(partition: number): number {
    const known = this.#next.get(partition);
    return known ?? this.#target.startOf(partition);
  }

  async #readOn(): Promise<void> {
    while (this.#isWanted && !this.#isStopped) {
      await this.#fill();
      if (this.#isStopped) return;
      await this.#fileInOrder();
      if (this.#isStopped || !this.#isAtEnd()) continue;
      this.#isCaughtUp = true;
      break;
    }
    this.#target.onFiled();
  }

  #isAtEnd(): boolean {
    const { partitions } = this.#topic;
    return partitions.every((partition) => {
      const isRead = (this.#read.get(partition)?.length ?? 0) === 0;
      return isRead && this.#nextOf(partition) >= this.#end(partition);
    });
  }

  /** Reads a piece of each partition of which nothing is waiting to be filed. */
  async #fill(): Promise<void> {
    const { reader } = this.#broker;
    const { partitions } = this.#topic;
    const plans: ReadPlan[] = [];
    const planned: number[] = [];
    const bytesMax = Math.max(Math.floor(readBytesMax / partitions.length), readBytesMin);
    for (const partition of [...partitions]) {
      if ((this.#read.get(partition)?.length ?? 0) > 0) continue;
      const start = this.#skipDeleted(partition);
      const offsetEnd = this.#end(partition);
      if (start >= offsetEnd) continue;
      const plan = new ReadPlan();
      await reader.planLoading(partition, start, { bytesMax, oneAtLeast: true, offsetEnd }, plan);
      if (plan.bytes === 0) continue;
      plans.push(plan);
      planned.push(partition);
    }
    if (plans.length === 0) return;
    const found = await reader.read(plans);
    // A file went meanwhile, since nothing in it was alive: the next look begins above.
    if (found === undefined) return;
    for (let i = 0; i < plans.length; i++) {
      await this.#keep(planned[i]!, plans[i]!, found.pieces[i]!);
      await this.#pause();
    }
    found.release();
  }

  #skipDeleted(partition: number): number {
    const { partitions } = this.#broker.replica.state.topics;
    const logStart = partitions.logStart(partition);
    const next = this.#nextOf(partition);
    if (next >= logStart) return next;
    this.#next.set(partition, logStart);
    this.#target.onLogStart(partition, logStart);
    return logStart;
  }

  async #keep(partition: number, plan: ReadPlan, pieces: readonly Buffer[]): Promise<void> {
    const batches: FiledBatch[] = [];
    for (let i = 0; i < pieces.length; i++) {
      const batch = pieces[i]!;
      const end = readLastOffset(batch, 0) + 1;
      if (end <= this.#nextOf(partition)) continue;
      const opened = await this.#broker.storedBatches.unpack(batch);
      if (opened === 'stopped') break;
      if (opened === null) {
        this.#onDamage(partition, readBaseOffset(batch, 0));
        break;
      }
      batches.push(this.#filed(batch, opened, partition, plan.positions[i]!));
      this.#next.set(partition, end);
    }
    this.#read.set(partition, batches);
  }

  #filed(batch: Buffer, opened: Buffer, partition: number, position: number): FiledBatch {
    const records = isPacked(batch) ? opened : null;
    return fileBatch(batch, records, { partition, position }, this.#rules);
  }

  /** Nothing behind a batch that cannot be opened is delivered, until it is deleted. */
  #onDamage(partition: number, offset: number): void {
    this.#damage = { partition, offset };
    const facts = { topic: this.#topic.name, partition, offset };
    this.#broker.log.error(facts, 'a stored batch is damaged: keyed delivery stops before it');
  }

  get #isHeldByDamage(): boolean {
    if (this.#damage === undefined) return false;
    const { partition, offset } = this.#damage;
    return this.#broker.replica.state.topics.partitions.logStart(partition) <= offset;
  }

  /**
   * Files what was read, oldest first, as long as it is known which is the oldest: each partition
   * with more in the log has to have something read.
   */
  async #fileInOrder(): Promise<void> {
    let records = 0;
    for (;;) {
      const partition = this.#oldest();
      if (partition === undefined) return;
      const batch = this.#read.get(partition)!.shift()!;
      this.#target.file(batch);
      records += batch.offsetCount;
      if (records < recordsPerTurn) continue;
      records = 0;
      this.#target.onFiled();
      await this.#pause();
      if (this.#isStopped) return;
    }
  }

  #oldest(): number | undefined {
    let oldest: number | undefined;
    let position = Number.POSITIVE_INFINITY;
    for (const partition of this.#topic.partitions) {
      const first = this.#read.get(partition)?.[0];
      if (first === undefined) {
        if (this.#nextOf(partition) < this.#end(partition)) return undefined;
      } else if (first.position < position) {
        oldest = partition;
        position = first.position;
      }
    }
    return oldest;
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#broker.clock.soon(resolve));
  }
}
