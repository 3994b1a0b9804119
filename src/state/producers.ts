import type { ByteReader, ByteWriter } from '../core/bytes.ts';

/** How many batches of a producer are remembered to answer duplicates, as in Kafka. */
export const batchesRemembered = 5;

export interface RememberedBatch {
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly baseOffset: number;
  /** The broker's timestamp where the topic uses LogAppendTime, else -1. */
  readonly logAppendTime: number;
}

/** What a partition knows of one idempotent producer. */
export interface ProducerState {
  epoch: number;
  /** Oldest first, at most five, all of the present epoch. */
  batches: RememberedBatch[];
  /** When the leader took its last batch, ms since 1970. */
  lastMs: number;
}

/** The facts of a batch that concern its producer. */
export interface ProducerBatch extends RememberedBatch {
  readonly producerId: number;
  readonly epoch: number;
}

/** Producer state by partition and producer id. */
export class ProducerTable {
  readonly #partitions = new Map<number, Map<number, ProducerState>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(partition: number, producerId: number): ProducerState | undefined {
    return this.#partitions.get(partition)?.get(producerId);
  }

  *all(): Generator<readonly [partition: number, producerId: number, state: ProducerState]> {
    for (const [partition, producers] of this.#partitions) {
      for (const [producerId, state] of producers) yield [partition, producerId, state];
    }
  }

  /** Producers of one partition, for DescribeProducers and expiry. */
  of(partition: number): ReadonlyMap<number, ProducerState> | undefined {
    return this.#partitions.get(partition);
  }

  append(partition: number, batch: ProducerBatch, appendedMs: number): void {
    const producers = this.#partitions.get(partition) ?? new Map<number, ProducerState>();
    this.#partitions.set(partition, producers);
    const before = producers.get(batch.producerId);
    if (before === undefined) this.#size++;
    const state = before ?? { epoch: batch.epoch, batches: [], lastMs: appendedMs };
    producers.set(batch.producerId, state);
    remember(state, batch, appendedMs);
  }

  expire(partition: number, producerId: number): void {
    const producers = this.#partitions.get(partition);
    if (!producers?.delete(producerId)) return;
    this.#size--;
    if (producers.size === 0) this.#partitions.delete(partition);
  }

  removePartition(partition: number): void {
    this.#size -= this.#partitions.get(partition)?.size ?? 0;
    this.#partitions.delete(partition);
  }

  partitions(): IterableIterator<number> {
    return this.#partitions.keys();
  }

  /** The producers of one partition, for a snapshot. */
  writePartition(writer: ByteWriter, partition: number): void {
    const producers = this.#partitions.get(partition)!;
    writer.uvarint(partition).uvarint(producers.size);
    for (const [producerId, state] of producers) {
      writer.uvarint(producerId).f64(state.epoch).f64(state.lastMs).u8(state.batches.length);
      for (const batch of state.batches) {
        writer.u32(batch.firstSequence).u32(batch.lastSequence);
        writer.uvarint(batch.baseOffset).f64(batch.logAppendTime);
      }
    }
  }

  readPartition(reader: ByteReader): void {
    const partition = reader.uvarint();
    const producers = new Map<number, ProducerState>();
    this.#partitions.set(partition, producers);
    for (let left = reader.count(); left > 0; left--) {
      const producerId = reader.uvarint();
      const epoch = reader.f64();
      const lastMs = reader.f64();
      const batches = Array.from({ length: reader.u8() }, () => ({
        firstSequence: reader.u32(),
        lastSequence: reader.u32(),
        baseOffset: reader.uvarint(),
        logAppendTime: reader.f64(),
      }));
      producers.set(producerId, { epoch, batches, lastMs });
      this.#size++;
    }
  }
}

/** Adds a batch to a producer's state: the same code for what is applied and what is planned. */
export function remember(state: ProducerState, batch: ProducerBatch, appendedMs: number): void {
  if (batch.epoch !== state.epoch) {
    state.epoch = batch.epoch;
    state.batches = [];
  }
  if (state.batches.length === batchesRemembered) state.batches.shift();
  state.batches.push({
    firstSequence: batch.firstSequence,
    lastSequence: batch.lastSequence,
    baseOffset: batch.baseOffset,
    logAppendTime: batch.logAppendTime,
  });
  state.lastMs = appendedMs;
}
