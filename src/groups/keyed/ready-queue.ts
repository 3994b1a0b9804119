import { none, type RecordStore } from './record-store.ts';

const ringInitial = 1024;

/**
 * Records that may be granted, oldest first. What is appended comes in order and waits in a ring;
 * what comes back out of order waits in a heap. Entries are never taken out in the middle: one that
 * was granted by another way is passed over when its turn comes. Each entry has the journal place
 * of its record's batch: a place that was given to another record meanwhile is told by it.
 */
export class ReadyQueue {
  readonly #store: RecordStore;
  readonly #isReady: (ref: number) => boolean;
  #ring = new Int32Array(ringInitial);
  #ringPositions = new Float64Array(ringInitial);
  #head = 0;
  #length = 0;
  readonly #heap: number[] = [];
  readonly #heapPositions: number[] = [];

  constructor(store: RecordStore, isReady: (ref: number) => boolean) {
    this.#store = store;
    this.#isReady = isReady;
  }

  /** Entries, those that are no longer ready included. */
  get length(): number {
    return this.#length + this.#heap.length;
  }

  /** Newer than all that came this way before. */
  append(ref: number): void {
    if (this.#length === this.#ring.length) this.#growRing();
    const at = (this.#head + this.#length) & (this.#ring.length - 1);
    this.#ring[at] = ref;
    this.#ringPositions[at] = this.#positionOf(ref);
    this.#length++;
  }

  /** Anywhere. */
  insert(ref: number): void {
    const position = this.#positionOf(ref);
    let at = this.#heap.length;
    this.#heap.push(ref);
    this.#heapPositions.push(position);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(position, ref, parent)) break;
      this.#place(at, this.#heap[parent]!, this.#heapPositions[parent]!);
      at = parent;
    }
    this.#place(at, ref, position);
  }

  /** The oldest record that is ready, `none` if there is none. */
  peek(): number {
    while (this.#length > 0) {
      if (this.#isLive(this.#ring[this.#head]!, this.#ringPositions[this.#head]!)) break;
      this.#head = (this.#head + 1) & (this.#ring.length - 1);
      this.#length--;
    }
    while (this.#heap.length > 0 && !this.#isLive(this.#heap[0]!, this.#heapPositions[0]!)) {
      this.#popHeap();
    }
    if (this.#heap.length === 0) return this.#length === 0 ? none : this.#ring[this.#head]!;
    if (this.#length === 0) return this.#heap[0]!;
    const inOrder = this.#ring[this.#head]!;
    const isHeapNewer = this.#isBefore(this.#ringPositions[this.#head]!, inOrder, 0);
    return isHeapNewer ? inOrder : this.#heap[0]!;
  }

  #isLive(ref: number, position: number): boolean {
    return this.#positionOf(ref) === position && this.#isReady(ref);
  }

  #positionOf(ref: number): number {
    return this.#store.position[this.#store.batchOf[ref]!]!;
  }

  /** Whether (position, ref) is older than the entry of the heap. */
  #isBefore(position: number, ref: number, at: number): boolean {
    const other = this.#heapPositions[at]!;
    if (position !== other) return position < other;
    // Of one batch, if the other entry is alive; if it is not, any order will do.
    return this.#store.offset(ref) < this.#store.offset(this.#heap[at]!);
  }

  #place(at: number, ref: number, position: number): void {
    this.#heap[at] = ref;
    this.#heapPositions[at] = position;
  }

  #popHeap(): void {
    const last = this.#heap.pop()!;
    const lastPosition = this.#heapPositions.pop()!;
    const { length } = this.#heap;
    if (length === 0) return;
    let at = 0;
    for (let child = 1; child < length; child = 2 * at + 1) {
      const right = child + 1;
      if (right < length) {
        const isRightOlder = this.#isBefore(this.#heapPositions[right]!, this.#heap[right]!, child);
        if (isRightOlder) child = right;
      }
      if (this.#isBefore(lastPosition, last, child)) break;
      this.#place(at, this.#heap[child]!, this.#heapPositions[child]!);
      at = child;
    }
    this.#place(at, last, lastPosition);
  }

  #growRing(): void {
    const ring = new Int32Array(this.#ring.length * 2);
    const positions = new Float64Array(ring.length);
    for (let i = 0; i < this.#length; i++) {
      const from = (this.#head + i) & (this.#ring.length - 1);
      ring[i] = this.#ring[from]!;
      positions[i] = this.#ringPositions[from]!;
    }
    this.#ring = ring;
    this.#ringPositions = positions;
    this.#head = 0;
  }
}
