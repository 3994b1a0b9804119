import { encodeProducerIdsAllocated } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { Replica } from './replica.ts';

/** Ids are reserved in the log by blocks, so that most need no entry; a restart skips a rest. */
const blockSize = 1000;

type Take = (producerId: number | undefined) => void;

/** Gives out producer ids, each only once in the life of the cluster. */
export class ProducerIds {
  readonly #replica: Replica;
  #next = 0;
  #end = 0;
  #waiting: Take[] = [];
  #reserving = false;

  constructor(replica: Replica) {
    this.#replica = replica;
  }

  /** Calls back with a fresh id; undefined when none can be reserved now. */
  next(take: Take): void {
    if (this.#next < this.#end) {
      take(this.#next++);
      return;
    }
    this.#waiting.push(take);
    if (!this.#reserving) this.#reserve();
  }

  #reserve(): void {
    this.#reserving = true;
    const start = this.#replica.state.nextProducerId;
    const count = Math.max(blockSize, this.#waiting.length);
    const meta = encodeProducerIdsAllocated(start + count);
    this.#replica.propose({ type: EntryType.producerIdsAllocated, meta }, (outcome) => {
      this.#reserving = false;
      const isReserved = outcome === 'applied';
      if (isReserved) {
        this.#next = start;
        this.#end = start + count;
      }
      for (const take of this.#waiting.splice(0)) {
        if (isReserved) this.next(take);
        else take(undefined);
      }
    });
  }
}
