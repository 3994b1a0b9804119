import type { TopicSettings } from '../config/topic-settings.ts';
import type { Clock } from '../core/clock.ts';
import { type Codecs, Compression } from '../core/compression.ts';
import type { StoredEntry } from '../log/format.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import {
  readCompressionBits,
  writeBaseOffset,
  writeLeaderEpoch,
  writeTimestamps,
} from '../protocol/records/batch-header.ts';
import { recompressBatch, renumberBatch } from '../protocol/records/build.ts';
import {
  type RecordError,
  type ValidBatch,
  validateProduce,
} from '../protocol/records/validate.ts';
import { encodeBatches } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { ProducerState, RememberedBatch } from '../state/producers.ts';
import { readStoredBatch } from '../state/stored-batch.ts';
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
      onGroupApplied: () => undefined,
      onPlansDropped: () => {
        this.#ends.fill(Number.NaN);
        this.#producers.drop();
      },
    });
  }

  /**
   * Plans one request, all partitions in one entry, and calls back once its outcome is durable;
   * at once, if nothing of it needs to be.
   */
  produce(
    parts: readonly ProducePart[],
    version: number,
    done: (outcomes: readonly ProduceOutcome[]) => void,
  ): void {
    const batches: Buffer[] = [];
    const partitions: number[] = [];
    const nowMs = this.#clock.wallMs();
    let restsOnPending = false;
    const outcomes = parts.map((part) => {
      const planned = this.#plan(part, version, nowMs);
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

  #plan(part: ProducePart, version: number, nowMs: number): PlannedPart {
    const { settings, partition } = part;
    const valid = validateProduce(
      part.records,
      {
        version,
        topicPartition: part.topicPartition,
        messageBytesMax: settings.messageBytesMax,
        openedBytesMax: this.#openedBytesMax,
        timestampType: settings.timestampType,
        timestampBeforeMaxMs: settings.timestampBeforeMaxMs,
        timestampAfterMaxMs: settings.timestampAfterMaxMs,
        compacted: false,
        nowMs,
      },
      this.#codecs,
    );
    if (!valid.ok) return refused(valid.errorCode, valid.message, valid.recordErrors);
    if (valid.isTransactional) {
      return refused(ErrorCode.INVALID_TXN_STATE, 'Transactions are not supported');
    }
    if (!this.#replica.disk.mayGrow(valid.bytes)) {
      return refused(ErrorCode.KAFKA_STORAGE_ERROR, 'The disk of the broker is nearly full');
    }
    if (valid.producerId >= 0) {
      const verdict = judgeSequence(this.#producers.get(partition, valid.producerId), valid);
      if (typeof verdict === 'object') {
        return this.#duplicate(part, valid.producerId, verdict);
      }
      if (verdict !== ErrorCode.NONE)
        return refused(verdict, sequenceMessage(verdict, valid, part));
    }
    return this.#append(part, valid, nowMs);
  }

  #duplicate(part: ProducePart, producerId: number, first: RememberedBatch): PlannedPart {
    return {
      outcome: accepted(first.baseOffset, first.logAppendTime),
      batch: undefined,
      restsOnPending: this.#producers.isPending(part.partition, producerId),
    };
  }

  #append(part: ProducePart, valid: ValidBatch, nowMs: number): PlannedPart {
    const { partition } = part;
    const batch = this.#prepare(part, valid, nowMs);
    const baseOffset = this.#end(partition);
    writeBaseOffset(batch, 0, baseOffset);
    writeLeaderEpoch(batch, 0, this.#replica.leaderEpoch);
    this.#ends[partition] = baseOffset + valid.count;
    const stored = readStoredBatch(batch);
    if (stored.producerId >= 0) this.#producers.plan(partition, stored, nowMs);
    return { outcome: accepted(baseOffset, stored.logAppendTime), batch, restsOnPending: false };
  }

  /** The batch as it is stored: as it was sent, but for what the topic's settings change. */
  #prepare(part: ProducePart, valid: ValidBatch, nowMs: number): Buffer {
    const { compressionType, timestampType } = part.settings;
    let batch = part.records!.subarray(0, valid.bytes);
    if (valid.deltasToMend) batch = renumberBatch(batch, 0);
    if (compressionType !== 'producer') {
      const wanted = compressionType === 'uncompressed' ? 'none' : compressionType;
      if (readCompressionBits(batch, 0) !== Compression[wanted]) {
        batch = recompressBatch(batch, 0, valid.opened, Compression[wanted], this.#codecs);
      }
    }
    if (timestampType === 'LogAppendTime') writeTimestamps(batch, 0, timestampType, nowMs);
    else if (valid.timestampsToMend) writeTimestamps(batch, 0, timestampType, valid.maxTimestamp);
    return batch;
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
    if (entry.type !== EntryType.batches) return;
    for (let i = 0; i < entry.batches.length; i++) {
      this.#producers.applied(entry.partitions[i]!, entry.batches[i]!);
    }
  }
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
function refuseStored(outcomes: readonly ProduceOutcome[], result: 'disk-full' | 'stopped'): void {
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
