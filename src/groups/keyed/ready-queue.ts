import { grown, none, type RecordStore } from './record-store.ts';

const initialBatches = 64;

/**
 * Records that may be granted, oldest first, by the batches in which they are: a heap has the
 * batches with such a record, by their place in the journal, and for each it is known which of its
 * records may be the first. A consumer is given all that it may get of a batch at once, so that a
 * record costs no entry of its own. Nothing is ever taken out in the middle: a record that was
 * granted by another way is passed over, and so is a batch that was let go. (Each entry has the
 * journal place of its batch: a number that another batch has meanwhile is told by it.)
 */
export class ReadyQueue {
  readonly #store: RecordStore;
  readonly #isReady: (ref: number) => boolean;
  readonly #heap: number[] = [];
  readonly #heapPositions: number[] = [];
  /** By batch, for those in the heap: no record before this one of it is ready. */
  #first = new Int32Array(initialBatches);
  /** By batch: the place that its entry has. */
  #positions = new Float64Array(initialBatches).fill(Number.NaN);

  constructor(store: RecordStore, isReady: (ref: number) => boolean) {
    this.#store = store;
    this.#isReady = isReady;
  }

  /** This record may be ready now; so may others behind it in its batch. */
  add(ref: number, batch = this.#store.batchOf[ref]!): void {
    const index = ref - this.#store.first[batch]!;
    const position = this.#store.position[batch]!;
    if (batch >= this.#first.length) this.#grow(batch);
    if (this.#positions[batch] !== position) {
      this.#positions[batch] = position;
      this.#first[batch] = index;
      this.#push(batch, position);
    } else if (index < this.#first[batch]!) this.#first[batch] = index;
  }

  /** The oldest record that is ready, `none` if there is none. */
  peek(): number {
    while (this.#heap.length > 0) {
      const batch = this.#heap[0]!;
      const position = this.#heapPositions[0]!;
      if (this.#store.position[batch] === position) {
        const start = this.#store.first[batch]!;
        const end = start + this.#store.count[batch]!;
        for (let ref = start + this.#first[batch]!; ref < end; ref++) {
          if (!this.#isReady(ref)) continue;
          this.#first[batch] = ref - start;
          return ref;
        }
      }
      if (this.#positions[batch] === position) this.#positions[batch] = Number.NaN;
      this.#pop();
    }
    return none;
  }

  #push(batch: number, position: number): void {
    let at = this.#heap.length;
    this.#heap.push(batch);
    this.#heapPositions.push(position);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#heapPositions[parent]! <= position) break;
      this.#place(at, this.#heap[parent]!, this.#heapPositions[parent]!);
      at = parent;
    }
    this.#place(at, batch, position);
  }

  #pop(): void {
    const last = this.#heap.pop()!;
    const lastPosition = this.#heapPositions.pop()!;
    const { length } = this.#heap;
    if (length === 0) return;
    let at = 0;
    for (let child = 1; child < length; child = 2 * at + 1) {
      const right = child + 1;
      if (right < length && this.#heapPositions[right]! < this.#heapPositions[child]!) {
        child = right;
      }
      if (lastPosition <= this.#heapPositions[child]!) break;
      this.#place(at, this.#heap[child]!, this.#heapPositions[child]!);
      at = child;
    }
    this.#place(at, last, lastPosition);
  }

  #place(at: number, batch: number, position: number): void {
    this.#heap[at] = batch;
    this.#heapPositions[at] = position;
  }

  #grow(batch: number): void {
    let { length } = this.#first;
    while (length <= batch) length *= 2;
    this.#first = grown(this.#first, new Int32Array(length));
    this.#positions = grown(this.#positions, new Float64Array(length).fill(Number.NaN));
  }
}
