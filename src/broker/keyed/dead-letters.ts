import { murmur2Partition } from '../../core/murmur2.ts';
import type { DeadLetter } from '../../groups/keyed/failures.ts';
import { ReadPlan, type ReadResult } from '../../log/log-reader.ts';
import { readLastOffset } from '../../protocol/records/batch-header.ts';
import {
  buildBatch,
  type RecordHeaderInput,
  type RecordInput,
} from '../../protocol/records/build.ts';
import { openRecords, RecordCursor, type RecordHeader } from '../../protocol/records/cursor.ts';
import type { Topic } from '../../state/topics.ts';
import { partitionsPerRequestMax } from '../19-create-topics.ts';
import type { Broker } from '../broker.ts';
import { topicNameError } from '../topic-names.ts';
import type { Delivery } from './delivery.ts';

/** Batches of the broker's own that ride in an entry, each with its stored partition. */
export interface OwnBatches {
  readonly batches: Buffer[];
  readonly partitions: number[];
}

/** The headers of a dead letter, behind those that the record had. All values are text. */
export const deadLetterHeaders = {
  topic: 'keylane.topic',
  /** Index and offset in that topic. */
  partition: 'keylane.partition',
  offset: 'keylane.offset',
  /** What the record was stamped with, ms since 1970; the dead letter has the present time. */
  timestamp: 'keylane.timestamp',
  group: 'keylane.group',
  attempts: 'keylane.attempts',
  /** When the first and the last delivery failed, ms since 1970. */
  firstFailure: 'keylane.first.failure',
  lastFailure: 'keylane.last.failure',
  /** How the last delivery failed: died, lease, rejected, given up, left. */
  reason: 'keylane.reason',
} as const;

/** What is read and written in one go. */
const lettersAtATime = 500;
const readBytesMax = 4 * 1024 * 1024;
/** Records are put together up to this size: what is larger goes alone. */
const batchBytesMax = 256 * 1024;
/** The disk is full, or a topic cannot be made: later it may go. */
const retryMs = 1000;

const cursor = new RecordCursor();

/**
 * Takes records that failed too often to the dead letter topic. The batch is written in the entry
 * that finishes them, so there is never one without the other. Until then their keys are paused.
 */
export class DeadLetters {
  readonly #broker: Broker;
  readonly #delivery: Delivery;
  #waiting: DeadLetter[] = [];
  #isAtWork = false;
  #isStopped = false;
  #cancelRetry: (() => void) | undefined;
  /** What was logged of a topic that does not do. */
  #complaint = '';
  /** Of the partitions, for letters without a key. */
  #turn = 0;

  constructor(broker: Broker, delivery: Delivery) {
    this.#broker = broker;
    this.#delivery = delivery;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelRetry?.();
    this.#waiting = [];
  }

  /** Takes what failed too often since the last time; it is handled in later turns. */
  take(): void {
    for (const letter of this.#delivery.dispatcher.failures.takeDeadLetters()) {
      if (letter.isHalted) this.#tellHalted(letter);
      else this.#waiting.push(letter);
    }
    if (this.#waiting.length === 0 || this.#isStopped) return;
    if (this.#isAtWork || this.#cancelRetry !== undefined) return;
    this.#isAtWork = true;
    this.#work().then(
      () => {
        this.#isAtWork = false;
      },
      (error: unknown) => this.#broker.fatal(error),
    );
  }

  async #work(): Promise<void> {
    const { clock } = this.#broker;
    await new Promise<void>((resolve) => clock.soon(resolve));
    while (this.#waiting.length > 0 && !this.#isStopped) {
      const letters = this.#waiting.splice(0, lettersAtATime);
      if (await this.#handle(letters)) continue;
      this.#waiting = [...letters, ...this.#waiting];
      this.#retryLater();
      return;
    }
  }

  #retryLater(): void {
    if (this.#isStopped) return;
    this.#cancelRetry = this.#broker.clock.after(retryMs, () => {
      this.#cancelRetry = undefined;
      this.take();
    });
  }

  /** False if nothing can be done about them now. */
  async #handle(letters: readonly DeadLetter[]): Promise<boolean> {
    const name = this.#targetName();
    if (name === undefined) {
      this.#skip(letters);
      return true;
    }
    const target = this.#broker.topics.byName(name) ?? (await this.#create(name));
    if (target === undefined) return false;
    const wanted = await this.#plan(letters);
    const read = await this.#broker.reader.read(wanted.plans);
    if (read === undefined) return false;
    try {
      // From here on to the proposal all is one turn: what is planned is what is there.
      if (this.#isStopped) return true;
      if (!this.#write(target, wanted, read)) return false;
    } finally {
      read.release();
    }
    this.#waiting.push(...wanted.rest);
    return true;
  }

  /** Where dead letters go; undefined where they are skipped. */
  #targetName(): string | undefined {
    const { topic, settings } = this.#delivery;
    const name = settings.deadLetterTopic;
    if (name === undefined || isNestedName(topic.name, name)) return undefined;
    if (name === topic.name) {
      this.#complain('a topic is not its own dead letter topic: dead letters are skipped', name);
      return undefined;
    }
    const error = topicNameError(name);
    if (error === undefined) return name;
    this.#complain(`the dead letter topic cannot be: ${error}; dead letters are skipped`, name);
    return undefined;
  }

  /** As when a client names it first, whether or not clients may; of as many partitions. */
  async #create(name: string): Promise<Topic | undefined> {
    const { topics, settings } = this.#broker;
    const underWay = topics.creating(name);
    if (underWay === undefined) {
      const { partitions } = this.#delivery.topic;
      const partitionCount = Math.min(partitions.length, partitionsPerRequestMax);
      if (topics.partitionCount + partitionCount > settings['max.partitions']) {
        this.#complain('there is no room for the dead letter topic: dead letters wait', name);
        return undefined;
      }
      await topics.create({ name, partitionCount, configs: new Map() });
    } else await underWay;
    return topics.byName(name);
  }

  /** Where the letters' batches are, each once. */
  async #plan(letters: readonly DeadLetter[]): Promise<Wanted> {
    const { reader } = this.#broker;
    const sorted = [...letters].sort((a, b) => a.partition - b.partition || a.offset - b.offset);
    const wanted: Wanted = { plans: [], letters: [], gone: [], rest: [] };
    let bytes = 0;
    let last: ReadPlan | undefined;
    for (const [i, letter] of sorted.entries()) {
      const { partition, offset } = letter;
      const before = sorted[i - 1];
      // It may have failed for good twice, if an earlier record of its key came back in between.
      if (before?.partition === partition && before.offset === offset) continue;
      if (last?.partition === partition && offset < last.end) {
        wanted.letters.at(-1)!.push(letter);
        continue;
      }
      if (bytes > readBytesMax) {
        wanted.rest.push(...sorted.slice(i));
        break;
      }
      const plan = new ReadPlan();
      const limits = { bytesMax: 0, oneAtLeast: true, offsetEnd: offset + 1 };
      await reader.planLoading(partition, offset, limits, plan);
      if (plan.bytes === 0) {
        wanted.gone.push(letter);
        continue;
      }
      bytes += plan.bytes;
      wanted.plans.push(plan);
      wanted.letters.push([letter]);
      last = plan;
    }
    return wanted;
  }

  /** False if the disk has no room: nothing is planned then. */
  #write(target: Topic, wanted: Wanted, { pieces }: ReadResult): boolean {
    const { dispatcher } = this.#delivery;
    const { failures } = dispatcher;
    const buried: DeadLetter[] = wanted.gone.filter((letter) => failures.isDead(letter));
    const packer = new Packer(this.#broker, target);
    for (const [i, letters] of wanted.letters.entries()) {
      const live = letters.filter((letter) => failures.isDead(letter));
      const found = live.length === 0 ? noRecords : this.#find(live, pieces[i]![0]!, target);
      for (const letter of live) {
        buried.push(letter);
        const record = found.get(letter.offset);
        if (record === undefined) continue;
        packer.add(record, record.key === null ? this.#turn++ : undefined);
      }
    }
    if (!this.#broker.replica.disk.mayGrow(packer.bytes)) return false;
    if (this.#broker.topics.byId(target.id) === undefined) return false;
    if (buried.length === 0) return true;
    for (const letter of buried) failures.bury(letter);
    const { groupId, topic } = this.#delivery;
    const { count } = packer;
    const skipped = buried.length - count;
    const facts = { groupId, topic: topic.name, deadLetterTopic: target.name, count, skipped };
    this.#broker.log.warn(facts, 'records failed too often: they go to the dead letter topic');
    this.#delivery.flush(undefined, packer.finish());
    this.#delivery.serve();
    return true;
  }

  /**
   * The letters' records out of their stored batch, as they go to the dead letter topic. Those that
   * came out of it as dead letters before are not among them: a circle of topics ends here.
   */
  #find(
    letters: readonly DeadLetter[],
    batch: Buffer,
    target: Topic,
  ): ReadonlyMap<number, RecordInput> {
    const { codecs, settings, clock } = this.#broker;
    const found = new Map<number, RecordInput>();
    if (readLastOffset(batch, 0) < letters[0]!.offset) return found;
    const byOffset = new Map(letters.map((letter) => [letter.offset, letter]));
    cursor.reset(batch, 0, openRecords(batch, 0, codecs, settings['decompressed.bytes.max']));
    while (cursor.next()) {
      const letter = byOffset.get(cursor.offset);
      const before = letter === undefined ? [] : cursor.headers();
      if (letter === undefined || cameFrom(before, target.name)) continue;
      const value = cursor.value();
      const headers = [...before, ...this.#headers(letter, cursor.timestamp)];
      const timestamp = clock.wallMs();
      found.set(letter.offset, { key: cursor.key(), value, timestamp, headers });
    }
    cursor.release();
    return found;
  }

  #headers({ partition, offset, trial }: DeadLetter, timestamp: number): RecordHeaderInput[] {
    const { groupId, topic } = this.#delivery;
    const names = deadLetterHeaders;
    const texts: readonly (readonly [string, string | number])[] = [
      [names.topic, topic.name],
      [names.partition, topic.partitions.indexOf(partition)],
      [names.offset, offset],
      [names.timestamp, timestamp],
      [names.group, groupId],
      [names.attempts, attemptsOf(trial.quarters)],
      [names.firstFailure, trial.firstMs],
      [names.lastFailure, trial.lastMs],
      [names.reason, trial.reason],
    ];
    return texts.map(([key, text]) => ({ key, value: Buffer.from(String(text)) }));
  }

  #skip(letters: readonly DeadLetter[]): void {
    const { failures } = this.#delivery.dispatcher;
    const buried = letters.filter((letter) => failures.isDead(letter));
    if (buried.length === 0) return;
    for (const letter of buried) failures.bury(letter);
    const { groupId, topic } = this.#delivery;
    const facts = { groupId, topic: topic.name, skipped: buried.length };
    this.#broker.log.warn(facts, 'records failed too often: they are skipped');
    this.#delivery.serve();
  }

  #tellHalted({ partition, offset, trial }: DeadLetter): void {
    const { groupId, topic } = this.#delivery;
    const index = topic.partitions.indexOf(partition);
    const facts = { groupId, topic: topic.name, partition: index, offset, reason: trial.reason };
    this.#broker.log.warn(facts, 'a record failed too often: its key is halted');
  }

  /** Once, until there is something else to complain of. */
  #complain(message: string, deadLetterTopic: string): void {
    if (this.#complaint === message) return;
    this.#complaint = message;
    const { groupId, topic } = this.#delivery;
    this.#broker.log.warn({ groupId, topic: topic.name, deadLetterTopic }, message);
  }
}

/** Letters by the plan of their batch; `gone`: it is not there any more; `rest`: for later. */
interface Wanted {
  readonly plans: ReadPlan[];
  readonly letters: DeadLetter[][];
  readonly gone: DeadLetter[];
  readonly rest: DeadLetter[];
}

const noRecords: ReadonlyMap<number, RecordInput> = new Map();

interface Pack {
  readonly partition: number;
  readonly records: RecordInput[];
  bytes: number;
}

/** Puts records for one topic together into batches. */
class Packer {
  readonly #broker: Broker;
  readonly #target: Topic;
  readonly #packs: Pack[] = [];
  readonly #open = new Map<number, Pack>();
  /** About as much as the batches will take. */
  bytes = 0;
  count = 0;

  constructor(broker: Broker, target: Topic) {
    this.#broker = broker;
    this.#target = target;
  }

  /** `turn` chooses the partition of a record without a key. */
  add(record: RecordInput, turn: number | undefined): void {
    const { partitions } = this.#target;
    const { key } = record;
    const index =
      key === null
        ? (turn ?? 0) % partitions.length
        : murmur2Partition(key as Buffer, partitions.length);
    const partition = partitions[index]!;
    const bytes = bytesOf(record);
    let pack = this.#open.get(partition);
    if (pack === undefined || pack.bytes + bytes > batchBytesMax) {
      pack = { partition, records: [], bytes: 0 };
      this.#packs.push(pack);
      this.#open.set(partition, pack);
    }
    pack.records.push(record);
    pack.bytes += bytes;
    this.bytes += bytes;
    this.count++;
  }

  /** The batches with their offsets: they have to be proposed in this turn. */
  finish(): OwnBatches {
    const { codecs, produce } = this.#broker;
    const { timestampType } = this.#broker.topicSettings(this.#target);
    const own: OwnBatches = { batches: [], partitions: [] };
    for (const { partition, records } of this.#packs) {
      const batch = buildBatch({ records, timestampType }, codecs);
      produce.placeOwn(partition, batch, records.length);
      own.batches.push(batch);
      own.partitions.push(partition);
    }
    return own;
  }
}

function bytesOf({ key, value, headers }: RecordInput): number {
  let bytes = 32 + (key?.length ?? 0) + (value?.length ?? 0);
  for (const header of headers ?? []) bytes += 8 + header.key.length + (header.value?.length ?? 0);
  return bytes;
}

/** Leaving with the record in hand is a quarter of an attempt. */
function attemptsOf(quarters: number): number {
  return Math.floor(quarters / 4);
}

/** Whether a record with these headers was a dead letter of this topic. */
function cameFrom(headers: readonly RecordHeader[], topicName: string): boolean {
  return headers.some(
    ({ key, value }) => key === deadLetterHeaders.topic && value?.toString() === topicName,
  );
}

/**
 * Whether the topic is itself a dead letter topic by the same pattern: those of `x.dlq`, which
 * `<topic>.dlq` would take to `x.dlq.dlq`, are skipped.
 */
export function isNestedName(topicName: string, deadLetterTopic: string): boolean {
  const added = deadLetterTopic.length - topicName.length;
  if (added <= 0) return false;
  if (deadLetterTopic.startsWith(topicName))
    return topicName.endsWith(deadLetterTopic.slice(-added));
  if (deadLetterTopic.endsWith(topicName))
    return topicName.startsWith(deadLetterTopic.slice(0, added));
  return false;
}
