import { assert } from '../../core/assert.ts';
import type { LaneRange } from '../../groups/keyed/lane-range.ts';
import { none, RecordState } from '../../groups/keyed/record-store.ts';
import { ReadPlan } from '../../log/log-reader.ts';
import { ErrorCode } from '../../protocol/error-codes.ts';
import { encodeResponse } from '../../protocol/frame.ts';
import { isPacked } from '../../protocol/records/batch-header.ts';
import { type FetchResponseInput, fetchResponse } from '../../protocol/schema/01-fetch.ts';
import { StoredBatches, unpack } from '../../replica/stored-batches.ts';
import type { FetchOptions } from '../fetch-request.ts';
import type { RequestContext } from '../handler.ts';
import { batchesFrom, MessageSets } from '../message-sets.ts';
import type { Delivery } from './delivery.ts';
import type { Invariants } from './invariants.ts';
import { isWhole, type LaneBatch, laneBatch } from './lane-batches.ts';
import { isLaneOffset, laneOffset, slotOf } from './lane-numbers.ts';
import type { AskedPartition, LogAnswer, LogParts, PartitionResponse } from './log-parts.ts';
import { shownKey } from './shown-key.ts';

/** Lane numbers `[from, to)` of a range that go into an answer. */
export interface LanePart {
  readonly delivery: Delivery;
  readonly range: LaneRange;
  readonly from: number;
  readonly to: number;
  /** Granted by this fetch, or for it, and not asked for again. */
  readonly isNew: boolean;
  /** Whether its grants are durable; undefined: as everything that is planned now. */
  readonly durable: Promise<boolean> | undefined;
}

interface PlannedPart extends LanePart {
  readonly batches: LaneBatch[];
  /** Behind the last lane number that is in the answer. */
  readonly end: number;
}

/**
 * The answer to one fetch of lanes, and of partitions of the log named beside them. Its bytes leave
 * when the grants are durable, and hold what is granted still in that turn, by all that is planned
 * by then.
 */
export class LaneAnswer {
  readonly #context: RequestContext;
  readonly #correlationId: number;
  readonly #asked: readonly AskedPartition[];
  readonly #options: FetchOptions;
  readonly #logParts: LogParts;

  constructor(
    context: RequestContext,
    correlationId: number,
    asked: readonly AskedPartition[],
    options: FetchOptions,
    logParts: LogParts,
  ) {
    this.#context = context;
    this.#correlationId = correlationId;
    this.#asked = asked;
    this.#options = options;
    this.#logParts = logParts;
  }

  /** `onWhole` is told which new parts have left from their beginning to their end. */
  send(parts: readonly LanePart[], onWhole?: (sent: readonly LanePart[]) => void): void {
    this.#send(parts, onWhole).catch((error: unknown) => this.#context.broker.fatal(error));
  }

  /** What the parts of an answer rest on. Of one without any: on all that is planned. */
  #durable(parts: readonly LanePart[]): Promise<boolean> {
    const ahead = parts.map(({ durable }) => durable).filter((durable) => durable !== undefined);
    if (ahead.length > 0 && ahead.length === parts.length) {
      return Promise.all(ahead).then((all) => all.every((isDurable) => isDurable));
    }
    return new Promise((resolve) => {
      this.#context.broker.replica.afterPlanned((outcome) => resolve(outcome === 'applied'));
    });
  }

  async #send(
    parts: readonly LanePart[],
    onWhole: ((sent: readonly LanePart[]) => void) | undefined,
  ): Promise<void> {
    const { broker } = this.#context;
    const bytesMax = this.#options.maxBytes;
    const durable = this.#durable(parts);
    const log = this.#logParts.isEmpty ? undefined : await this.#logParts.read();
    if (parts.length === 0) {
      this.#write([], [], log);
      return;
    }
    const first = plan(parts, bytesMax, undefined);
    const plans = readPlans(first);
    const reading = broker.reader.read(plans);
    // Both are under way together.
    const [read, isDurable] = await Promise.all([reading, durable]);
    if (!isDurable || read === undefined) {
      read?.release();
      // The plans were dropped, and with them the grants.
      this.#write([], [], log);
      return;
    }
    const bytes = new Map<number, Buffer>();
    for (const [i, { positions }] of plans.entries()) {
      for (const [j, position] of positions.entries()) bytes.set(position, read.pieces[i]![j]!);
    }
    const opened = await this.#open(first, bytes);
    // Checked once more, in the turn in which the bytes leave.
    const { invariants } = broker.keyed;
    const planned = plan(parts, bytesMax, { invariants, bytes });
    this.#write(planned, this.#records(planned, bytes, opened), log, read.release, onWhole);
  }

  /** Large compressed batches that have to be taken apart are opened elsewhere. */
  async #open(
    planned: readonly PlannedPart[],
    bytes: ReadonlyMap<number, Buffer>,
  ): Promise<ReadonlyMap<Buffer, Buffer>> {
    const opened = new Map<Buffer, Buffer>();
    for (const { batches } of planned) {
      for (const { position, runs } of batches) {
        const stored = bytes.get(position)!;
        if (!StoredBatches.isLarge(stored) || opened.has(stored)) continue;
        if (runs.length === 1 && isWhole(stored, runs[0]!)) continue;
        const records = await this.#context.broker.storedBatches.unpack(stored);
        if (records !== null && records !== 'stopped') opened.set(stored, records);
      }
    }
    return opened;
  }

  #records(
    planned: readonly PlannedPart[],
    bytes: ReadonlyMap<number, Buffer>,
    opened: ReadonlyMap<Buffer, Buffer>,
  ): Buffer[][] {
    const { codecs } = this.#context.broker;
    const open = (stored: Buffer): Buffer | null => {
      if (!isPacked(stored)) return null;
      const records = opened.get(stored) ?? unpack(stored, codecs);
      assert(records !== null, 'the feed has opened it before');
      return records;
    };
    const isConverted = this.#context.apiVersion < batchesFrom;
    return planned.map(({ batches }) =>
      batches.flatMap((batch) => {
        const stored = bytes.get(batch.position)!;
        const pieces = laneBatch(stored, batch, open);
        return isConverted ? [Buffer.concat(pieces)] : pieces;
      }),
    );
  }

  /** As many of the records as a client without record batches has room for. */
  #converted(
    asked: AskedPartition,
    partition: PartitionResponse,
    sets: MessageSets,
  ): PartitionResponse {
    const stored = partition.records as readonly Buffer[];
    if (stored.length === 0) return partition;
    const limits = { fetchOffset: asked.offset, bytesMax: asked.bytesMax };
    return { ...partition, ...sets.of(limits, stored) };
  }

  #write(
    planned: readonly PlannedPart[],
    records: readonly Buffer[][],
    log: LogAnswer | undefined,
    release?: () => void,
    onWhole?: (sent: readonly LanePart[]) => void,
  ): void {
    const { apiVersion, reply, broker, client } = this.#context;
    const responses = new Map<string, FetchResponseInput['responses'][number]>();
    const sets =
      apiVersion < batchesFrom
        ? new MessageSets(broker, apiVersion, this.#options.maxBytes)
        : undefined;
    for (const asked of this.#asked) {
      const { topicId, topicName } = asked;
      const key = `${topicId}:${topicName}`;
      const topic = responses.get(key) ?? { topic: topicName, topicId, partitions: [] };
      responses.set(key, topic);
      const partition = isLaneOffset(asked.offset)
        ? this.#partition(asked, planned, records)
        : log?.responses.get(asked);
      if (partition === undefined) continue;
      const inForm = sets === undefined ? partition : this.#converted(asked, partition, sets);
      (topic.partitions as PartitionResponse[]).push(inForm);
    }
    const response = {
      errorCode: ErrorCode.NONE,
      sessionId: 0,
      responses: [...responses.values()],
    };
    const pieces = encodeResponse(fetchResponse, apiVersion, this.#correlationId, response);
    reply.send(pieces, (isWhole) => {
      release?.();
      log?.release();
      if (planned.length === 0) return;
      const now = broker.keyed.now();
      for (const part of planned) afterWritten(part, isWhole, client.connectionId, now);
      const sent = planned.filter((part) => isWhole && part.isNew && part.end === part.to);
      if (sent.length > 0) onWhole?.(sent);
    });
  }

  #partition(
    lane: AskedPartition,
    planned: readonly PlannedPart[],
    records: readonly Buffer[][],
  ): PartitionResponse {
    const slot = slotOf(lane.offset);
    const i = planned.findIndex(
      ({ range, delivery }) =>
        range.lane === lane.index &&
        delivery.slot === slot &&
        (delivery.topic.name === lane.topicName || delivery.topic.id === lane.topicId),
    );
    const part = planned[i];
    const end = part === undefined ? lane.offset : laneOffset(slot, part.end);
    return {
      partitionIndex: lane.index,
      errorCode: ErrorCode.NONE,
      highWatermark: end,
      lastStableOffset: end,
      logStartOffset: laneOffset(slot, 0),
      abortedTransactions: this.#options.isolationLevel === readUncommitted ? null : [],
      records: part === undefined ? [] : records[i]!,
    };
  }
}

const readUncommitted = 0;

function afterWritten(
  part: PlannedPart,
  isWhole: boolean,
  connectionId: number,
  now: { readonly monotonicMs: number; readonly wallMs: number },
): void {
  const { range, delivery, from, to, isNew } = part;
  if (isWhole) {
    range.writtenConnection = connectionId;
    range.writtenStart = from;
    range.writtenEnd = part.end;
    return;
  }
  // Nobody saw it, so nobody is charged.
  if (!isNew || range.end !== to || !range.isPresent) return;
  delivery.dispatcher.returnFrom(range, from, now, false);
  delivery.serve();
}

/** What is known when the bytes leave. */
interface Leaving {
  readonly invariants: Invariants;
  /** What was read, by position. */
  readonly bytes: ReadonlyMap<number, Buffer>;
}

/** Where the bytes of these grants are, as far as they are granted still and not deleted. */
function plan(
  parts: readonly LanePart[],
  bytesMax: number,
  leaving: Leaving | undefined,
): PlannedPart[] {
  const planned: PlannedPart[] = [];
  for (const part of parts) {
    const planner = new PartPlanner(part, bytesMax, leaving);
    if (planner.batches.length > 0) {
      planned.push({ ...part, batches: planner.batches, end: planner.end });
    }
  }
  return planned;
}

/** Of runs of neighbouring records up to this length each is checked, of longer ones some. */
const checkedAllMax = 64;
const checkedOneIn = 8;

/** Goes through the grants of a part as far as they are loaded and fit. */
class PartPlanner {
  readonly batches: LaneBatch[] = [];
  end: number;
  readonly #part: LanePart;
  readonly #leaving: Leaving | undefined;
  #bytesLeft: number;
  #isOver = false;

  constructor(part: LanePart, bytesMax: number, leaving: Leaving | undefined) {
    this.#leaving = leaving;
    this.#part = part;
    this.#bytesLeft = bytesMax;
    this.end = part.from;
    part.range.grants.forEach(part.from, part.to, (n, count, partition, offset) => {
      if (!this.#isOver) this.#addRun(n, count, partition, offset);
    });
    if (!this.#isOver) this.end = part.to;
  }

  #addRun(n: number, count: number, partition: number, offset: number): void {
    const { delivery, range } = this.#part;
    const { dispatcher, slot } = delivery;
    const { store } = dispatcher.board;
    const finished = dispatcher.ledger.finished(partition);
    const stride = count > checkedAllMax ? checkedOneIn : 1;
    for (let i = 0; i < count; ) {
      const ref = range.ref(n + i);
      // What was granted before a restart may not be loaded yet. To leave it out would tell the
      // client that it is not there.
      if (ref === none || (this.#bytesLeft <= 0 && this.batches.length > 0)) {
        this.#isOver = true;
        return;
      }
      // Deleted meanwhile: a gap.
      if (finished.has(offset + i)) {
        i++;
        this.end = n + i;
        continue;
      }
      const batch = store.batchOf[ref]!;
      if (this.#leaving?.bytes.has(store.position[batch]!) === false) {
        // It was loaded since the answer was begun: the next one brings it.
        this.#isOver = true;
        return;
      }
      const blockEnd = Math.min(ref + count - i, store.first[batch]! + store.count[batch]!);
      let next = ref;
      do {
        if ((i + next - ref) % stride === 0) this.#check(next);
        next++;
      } while (
        next < blockEnd &&
        range.ref(n + i + next - ref) === next &&
        !finished.has(offset + i + next - ref)
      );
      this.#addNeighbours(batch, ref, next, laneOffset(slot, n + i));
      i += next - ref;
      this.end = n + i;
    }
  }

  /** Records `[from, to)` of the store, which lie side by side in one batch. */
  #addNeighbours(batch: number, from: number, to: number, firstLaneOffset: number): void {
    const { store } = this.#part.delivery.dispatcher.board;
    const byteStart = store.end[from]! - store.recordBytes(from);
    const byteEnd = store.end[to - 1]!;
    this.#bytesLeft -= byteEnd - byteStart;
    const position = store.position[batch]!;
    const offset = store.offset(from);
    const last = this.batches.at(-1);
    const lastRun = last?.runs.at(-1);
    // In one batch offsets only grow: a record that came back is in a batch of its own.
    const isBehind =
      last?.position === position &&
      lastRun !== undefined &&
      offset >= lastRun.offset + lastRun.count;
    const run = { laneOffset: firstLaneOffset, offset, count: to - from, byteStart, byteEnd };
    if (last !== undefined && isBehind) last.runs.push(run);
    else this.batches.push({ position, bytes: store.bytes[batch]!, runs: [run] });
  }

  /** One key, one consumer: looked at for all records, or a share of them where they are many. */
  #check(ref: number): void {
    if (this.#leaving === undefined) return;
    const { invariants } = this.#leaving;
    invariants.checks.holder++;
    const { range, delivery } = this.#part;
    const { store, keys } = delivery.dispatcher.board;
    const key = store.key[ref]!;
    const isRight =
      store.state[ref] === RecordState.granted && (key < 0 || keys.holder[key] === range.id);
    if (isRight) return;
    invariants.violated('holder', () => ({
      groupId: delivery.groupId,
      topic: delivery.topic.name,
      memberId: range.member.id,
      lane: range.lane,
      ...shownKey(key < 0 ? undefined : keys.name(key)),
    }));
  }
}

function readPlans(planned: readonly PlannedPart[]): ReadPlan[] {
  const plan = new ReadPlan();
  const seen = new Set<number>();
  for (const { batches } of planned) {
    for (const { position, bytes } of batches) {
      if (seen.has(position)) continue;
      seen.add(position);
      plan.add(position, bytes);
    }
  }
  return [plan];
}
