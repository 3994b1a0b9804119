import { type ProducerBatch, type ProducerState, remember } from '../state/producers.ts';
import type { StateMachine } from '../state/state-machine.ts';
import { readStoredBatch } from '../state/stored-batch.ts';

interface Planned {
  readonly state: ProducerState;
  /** Batches in it that are not applied yet; at zero the applied state says the same. */
  pending: number;
}

/** Producer states as they will be once everything planned is applied. */
export class ProducerOverlay {
  readonly #state: StateMachine;
  #partitions = new Map<number, Map<number, Planned>>();

  constructor(state: StateMachine) {
    this.#state = state;
  }

  get(partition: number, producerId: number): ProducerState | undefined {
    const planned = this.#partitions.get(partition)?.get(producerId);
    return planned?.state ?? this.#state.producers.get(partition, producerId);
  }

  isPending(partition: number, producerId: number): boolean {
    return this.#partitions.get(partition)?.has(producerId) ?? false;
  }

  plan(partition: number, batch: ProducerBatch, nowMs: number): void {
    const producers = this.#partitions.get(partition) ?? new Map<number, Planned>();
    this.#partitions.set(partition, producers);
    const planned = producers.get(batch.producerId) ?? {
      state: this.#copyApplied(partition, batch, nowMs),
      pending: 0,
    };
    producers.set(batch.producerId, planned);
    planned.pending++;
    remember(planned.state, batch, nowMs);
  }

  #copyApplied(partition: number, batch: ProducerBatch, nowMs: number): ProducerState {
    const applied = this.#state.producers.get(partition, batch.producerId);
    if (applied === undefined) return { epoch: batch.epoch, batches: [], lastMs: nowMs };
    return { ...applied, batches: [...applied.batches] };
  }

  /** A planned batch was applied. */
  applied(partition: number, batch: Buffer): void {
    const producers = this.#partitions.get(partition);
    if (producers === undefined) return;
    const { producerId } = readStoredBatch(batch);
    const planned = producers.get(producerId);
    if (planned === undefined) return;
    planned.pending--;
    if (planned.pending > 0) return;
    producers.delete(producerId);
    if (producers.size === 0) this.#partitions.delete(partition);
  }

  drop(): void {
    this.#partitions = new Map();
  }
}
