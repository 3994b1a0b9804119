import type { TopicSettings } from '../config/topic-settings.ts';
import type { Clock } from '../core/clock.ts';
import type { Codecs } from '../core/compression.ts';
import type { StoredEntry } from '../log/format.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import {
  writeBaseOffset,
  writeLeaderEpoch,
  writeTimestamps,
} from '../protocol/records/batch-header.ts';
import {
  checkBatch,
  type ProduceRules,
  type RecordError,
  type ValidBatch,
} from '../protocol/records/validate.ts';
import { encodeBatches } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { ProducerState, RememberedBatch } from '../state/producers.ts';
import { readStoredBatch } from '../state/stored-batch.ts';
import {
  type BatchToOpen,
  type OpenedBatch,
  type OpeningAllowance,
  openBatch,
  requestAllowance,
} from './open-batch.ts';
import { ProducerOverlay } from './producer-overlay.ts';
import type { Replica } from './replica.ts';

/** One partition of a Produce request. */
export interface ProducePart {
  readonly partition: number;
  /** For messages, such as `orders-3`. */
  readonly topicPartition: string;
  readonly settings: TopicSettings;
  readonly records: Buffer | null;
}

/** What a producer is told about one partition. */
export interface ProduceOutcome {
  errorCode: number;
  baseOffset: number;
  logAppendTimeMs: number;
  message: string | null;
  recordErrors: readonly RecordError[];
}

/** A batch that is too large to be opened on the event loop. */
export interface LargePart extends BatchToOpen {
  /** For which settings of the topic it is opened. */
  readonly settings: TopicSettings;
}

/** A batch that was opened elsewhere. */
export interface OpenedPart {
  readonly settings: TopicSettings;
  readonly opened: OpenedBatch;
}

/** By the bytes that came with the request, which stay the same object. */
export type OpenedParts = ReadonlyMap<Buffer, OpenedPart>;

/**
 * Plans appends: validates batches, gives offsets and times, recognizes duplicates. Everything is
 * decided on what is planned already, not only on what is applied, so that many requests of one
 * producer can be in flight.
 */
export class ProducePlanner {
  readonly #replica: Replica;
  readonly #clock: Clock;
  readonly #codecs: Codecs;
  readonly #openedBytesMax: number;
  readonly #producers: ProducerOverlay;
  /** End offset of each partition once all that is planned is applied; NaN: as applied. */
  #ends = new Float64Array(1024).fill(Number.NaN);

  constructor(replica: Replica, clock: Clock, codecs: Codecs, openedBytesMax: number) {
    this.#replica = replica;
    this.#clock = clock;
    this.#codecs = codecs;
    this.#openedBytesMax = openedBytesMax;
    this.#producers = new ProducerOverlay(replica.state);
    replica.listen({
      onApplied: (entry) => this.#onApplied(entry),
      onPlansDropped: () => {
        this.#ends.fill(Number.NaN);
        this.#producers.drop();
      },
    });
  }

  /**
   * Plans one request, all partitions in one entry, and calls back once its outcome is durable;
   * at once, if nothing of it needs to be.
   *
   * If it has batches that are too large to be opened here, these are returned and nothing is
   * planned: they are to be opened elsewhere and handed in as `elsewhere` when it is planned again.
   */
  produce(
    parts: readonly ProducePart[],
    version: number,
    done: (outcomes: readonly ProduceOutcome[]) => void,
    elsewhere: OpenedParts = nothingElsewhere,
  ): readonly LargePart[] {
    const nowMs = this.#clock.wallMs();
    const allowance = requestAllowance();
    const opened: OpenedBatch[] = [];
    let large: LargePart[] | undefined;
    for (const part of parts) {
      const one = known(part, elsewhere) ?? this.#open(part, version, nowMs, allowance);
      if ('verdict' in one) opened.push(one);
      else {
        large ??= [];
        large.push(one);
        // There is a way to go in any case.
        allowance.bytes = 0;
      }
    }
    if (large !== undefined) return large;
    this.#planAll(parts, opened, nowMs, done);
    return nothingLarge;
  }

  #open(
    part: ProducePart,
    version: number,
    nowMs: number,
    allowance: OpeningAllowance,
  ): OpenedBatch | LargePart {
    const { records, settings } = part;
    const rules: ProduceRules = {
      version,
      topicPartition: part.topicPartition,
      messageBytesMax: settings.messageBytesMax,
      openedBytesMax: this.#openedBytesMax,
      timestampType: settings.timestampType,
      timestampBeforeMaxMs: settings.timestampBeforeMaxMs,
      timestampAfterMaxMs: settings.timestampAfterMaxMs,
      compacted: false,
      nowMs,
    };
    const refused = checkBatch(records, rules);
    if (refused !== null) return { verdict: refused, rewritten: null };
    const { compressionType } = settings;
    const batch = { records: records!, rules, compressionType, settings };
    return openBatch(batch, this.#codecs, allowance) ?? batch;
  }

  #planAll(
    parts: readonly ProducePart[],
    opened: readonly OpenedBatch[],
    nowMs: number,
    done: (outcomes: readonly ProduceOutcome[]) => void,
  ): void {
    const batches: Buffer[] = [];
    const partitions: number[] = [];
    let restsOnPending = false;
    const outcomes = parts.map((part, index) => {
      const planned = this.#plan(part, opened[index]!, nowMs);
      if (planned.batch !== undefined) {
        batches.push(planned.batch);
        partitions.push(part.partition);
      }
      restsOnPending ||= planned.restsOnPending;
      return planned.outcome;
    });
    if (batches.length > 0) {
      const command = { type: EntryType.batches, meta: encodeBatches(nowMs), batches, partitions };
      this.#replica.propose(command, (result) => {
        if (result !== 'applied') refuseStored(outcomes, result);
        done(outcomes);
      });
    } else if (restsOnPending) {
      this.#replica.afterPlanned((result) => {
        if (result !== 'applied') refuseStored(outcomes, result);
        done(outcomes);
      });
    } else done(outcomes);
  }

  #plan(part: ProducePart, { verdict, rewritten }: OpenedBatch, nowMs: number): PlannedPart {
    if (!verdict.ok) return refused(verdict.errorCode, verdict.message, verdict.recordErrors);
    const { partition } = part;
    if (verdict.isTransactional) {
      return refused(ErrorCode.INVALID_TXN_STATE, 'Transactions are not supported');
    }
    if (!this.#replica.disk.mayGrow(verdict.bytes)) {
      return refused(ErrorCode.KAFKA_STORAGE_ERROR, 'The disk of the broker is nearly full');
    }
    const { producerId } = verdict;
    if (producerId >= 0) {
      const judged = judgeSequence(this.#producers.get(partition, producerId), verdict);
      if (typeof judged === 'object') return this.#duplicate(part, producerId, judged);
      if (judged !== ErrorCode.NONE) {
        return refused(judged, sequenceMessage(judged, verdict, part));
      }
    }
    const batch = rewritten ?? part.records!.subarray(0, verdict.bytes);
    return this.#append(part, batch, verdict, nowMs);
  }

  #duplicate(part: ProducePart, producerId: number, first: RememberedBatch): PlannedPart {
    return {
      outcome: accepted(first.baseOffset, first.logAppendTime),
      batch: undefined,
      restsOnPending: this.#producers.isPending(part.partition, producerId),
    };
  }

  /** Only here is the batch changed: before, the request may be planned anew. */
  #append(part: ProducePart, batch: Buffer, valid: ValidBatch, nowMs: number): PlannedPart {
    const { partition } = part;
    const { timestampType } = part.settings;
    if (timestampType === 'LogAppendTime') writeTimestamps(batch, 0, timestampType, nowMs);
    else if (valid.timestampsToMend) writeTimestamps(batch, 0, timestampType, valid.maxTimestamp);
    const baseOffset = this.#end(partition);
    writeBaseOffset(batch, 0, baseOffset);
    writeLeaderEpoch(batch, 0, this.#replica.leaderEpoch);
    this.#ends[partition] = baseOffset + valid.count;
    const stored = readStoredBatch(batch);
    if (stored.producerId >= 0) this.#producers.plan(partition, stored, nowMs);
    return { outcome: accepted(baseOffset, stored.logAppendTime), batch, restsOnPending: false };
  }

  /**
   * Gives a batch of the broker's own, which no producer sent, its place behind all that is
   * planned. The caller proposes it in the same turn, in whatever entry it belongs to. In a
   * LogAppendTime batch the highest time is the present one already.
   */
  placeOwn(partition: number, batch: Buffer, count: number): void {
    const baseOffset = this.#end(partition);
    writeBaseOffset(batch, 0, baseOffset);
    writeLeaderEpoch(batch, 0, this.#replica.leaderEpoch);
    this.#ends[partition] = baseOffset + count;
  }

  #end(partition: number): number {
    if (partition >= this.#ends.length) {
      const grown = new Float64Array(Math.max(partition + 1, this.#ends.length * 2));
      grown.fill(Number.NaN);
      grown.set(this.#ends);
      this.#ends = grown;
    }
    const planned = this.#ends[partition]!;
    return Number.isNaN(planned) ? this.#replica.state.topics.partitions.end(partition) : planned;
  }

  #onApplied(entry: StoredEntry): void {
    for (let i = 0; i < entry.batches.length; i++) {
      this.#producers.applied(entry.partitions[i]!, entry.batches[i]!);
    }
  }
}

const nothingElsewhere: OpenedParts = new Map();
const nothingLarge: readonly LargePart[] = [];

/** What was opened elsewhere for a part, unless the topic's settings have changed since. */
function known(part: ProducePart, elsewhere: OpenedParts): OpenedBatch | undefined {
  if (elsewhere.size === 0 || part.records === null) return undefined;
  const found = elsewhere.get(part.records);
  return found?.settings === part.settings ? found.opened : undefined;
}

interface PlannedPart {
  readonly outcome: ProduceOutcome;
  readonly batch: Buffer | undefined;
  /** The answer tells of effects that are planned and not yet durable. */
  readonly restsOnPending: boolean;
}

function accepted(baseOffset: number, logAppendTimeMs: number): ProduceOutcome {
  return {
    errorCode: ErrorCode.NONE,
    baseOffset,
    logAppendTimeMs,
    message: null,
    recordErrors: [],
  };
}

function refused(
  errorCode: number,
  message: string,
  recordErrors: readonly RecordError[] = [],
): PlannedPart {
  const outcome = { errorCode, baseOffset: -1, logAppendTimeMs: -1, message, recordErrors };
  return { outcome, batch: undefined, restsOnPending: false };
}

/** The entry was not stored: what was accepted in it is refused, in a way that clients retry. */
function refuseStored(
  outcomes: readonly ProduceOutcome[],
  result: 'disk-full' | 'not-leader',
): void {
  for (const outcome of outcomes) {
    if (outcome.errorCode !== ErrorCode.NONE) continue;
    outcome.errorCode =
      result === 'disk-full' ? ErrorCode.KAFKA_STORAGE_ERROR : ErrorCode.NOT_LEADER_OR_FOLLOWER;
    outcome.baseOffset = -1;
    outcome.logAppendTimeMs = -1;
    outcome.message = result === 'disk-full' ? 'The disk of the broker is full' : null;
  }
}

const sequenceMax = 0x7fffffff;

/**
 * Kafka's ProducerAppendInfo and ProducerStateEntry: NONE, an error, or the remembered batch that
 * this one repeats.
 */
function judgeSequence(
  known: ProducerState | undefined,
  batch: ValidBatch,
): ErrorCode | RememberedBatch {
  if (known === undefined) return ErrorCode.NONE;
  const { producerEpoch, baseSequence } = batch;
  if (producerEpoch === known.epoch) {
    for (const remembered of known.batches) {
      const count = sequenceCount(remembered);
      if (remembered.firstSequence === baseSequence && count === batch.count) return remembered;
    }
  }
  if (producerEpoch < known.epoch) return ErrorCode.INVALID_PRODUCER_EPOCH;
  const last = known.batches.at(-1);
  if (producerEpoch > known.epoch) {
    return baseSequence === 0 || last === undefined
      ? ErrorCode.NONE
      : ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER;
  }
  if (last === undefined) return ErrorCode.NONE;
  const next = last.lastSequence === sequenceMax ? 0 : last.lastSequence + 1;
  return baseSequence === next ? ErrorCode.NONE : ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER;
}

function sequenceCount(batch: RememberedBatch): number {
  const span = batch.lastSequence - batch.firstSequence + 1;
  return span > 0 ? span : span + sequenceMax + 1;
}

function sequenceMessage(errorCode: number, batch: ValidBatch, part: ProducePart): string {
  const who = `producer ${batch.producerId} at ${part.topicPartition}`;
  return errorCode === ErrorCode.INVALID_PRODUCER_EPOCH
    ? `Epoch ${batch.producerEpoch} of ${who} is older than the last seen epoch`
    : `Out of order sequence number for ${who}: ${batch.baseSequence} (incoming seq. number)`;
}
