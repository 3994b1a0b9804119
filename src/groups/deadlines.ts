import { assert } from '../core/assert.ts';

/**
 * The two clocks, read once by the caller of each event. Monotonic time drives timers; wall time
 * is only ever stored, for rules that outlive the process.
 */
export interface Now {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** One deadline of one thing (a member's session, a group's round). Belongs to one `Deadlines`. */
export class Timer {
  readonly fire: (now: Now) => void;
  /** When it is due; Infinity while not scheduled. */
  deadlineMs = Number.POSITIVE_INFINITY;
  /** Where the heap has it sorted. Invariant: heapDeadlineMs <= deadlineMs while it is queued. */
  heapDeadlineMs = 0;
  /** Position in the heap, -1 while it is not queued. */
  heapIndex = -1;

  constructor(fire: (now: Now) => void) {
    this.fire = fire;
  }

  get isScheduled(): boolean {
    return this.heapIndex >= 0;
  }
}

/**
 * A timer that comes up this late says that the whole process was stopped or starved, and that
 * heartbeats which came in time may still lie unread in its sockets.
 */
const lateMsMax = 2_000;
/** So there is that long to read them before anybody is declared dead. */
const lateGraceMs = 1_000;

/** How many timers that were moved later one look at the next deadline sorts in anew. */
const settledPerLookMax = 64;

/**
 * All timers of a coordinator in one binary heap. Moving a deadline later (every heartbeat does)
 * only stores the new time; the heap is put right when the old time comes up. So a heartbeat costs
 * O(1), and each timer costs one O(log n) per timeout that it spans, however often it is moved.
 */
export class Deadlines {
  readonly #heap: Timer[] = [];

  get size(): number {
    return this.#heap.length;
  }

  schedule(timer: Timer, deadlineMs: number): void {
    assert(Number.isFinite(deadlineMs), 'deadlines are finite');
    timer.deadlineMs = deadlineMs;
    if (timer.heapIndex < 0) {
      timer.heapDeadlineMs = deadlineMs;
      timer.heapIndex = this.#heap.length;
      this.#heap.push(timer);
      this.#siftUp(timer);
    } else if (deadlineMs < timer.heapDeadlineMs) {
      timer.heapDeadlineMs = deadlineMs;
      this.#siftUp(timer);
    }
  }

  cancel(timer: Timer): void {
    timer.deadlineMs = Number.POSITIVE_INFINITY;
    if (timer.heapIndex >= 0) this.#remove(timer);
  }

  /**
   * When to call `expire` next, Infinity if there is no timer. Nothing is due before it, but what
   * was due then may have been moved later meanwhile.
   */
  nextMs(): number {
    for (let i = 0; i < settledPerLookMax; i++) {
      const first = this.#heap[0];
      if (first === undefined || first.deadlineMs === first.heapDeadlineMs) break;
      this.#settle(first);
    }
    return this.#heap[0]?.heapDeadlineMs ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Fires what is due at `now`. Touches at most `timersMax` timers, so that one turn of the loop
   * stays short, and returns how many it touched. Timers scheduled by what fires count as well.
   */
  expire(now: Now, timersMax: number): number {
    let count = 0;
    for (; count < timersMax; count++) {
      const first = this.#heap[0];
      if (first === undefined || first.heapDeadlineMs > now.monotonicMs) break;
      if (first.deadlineMs > first.heapDeadlineMs) {
        this.#settle(first);
      } else if (now.monotonicMs - first.deadlineMs > lateMsMax) {
        first.deadlineMs = now.monotonicMs + lateGraceMs;
        this.#settle(first);
      } else {
        this.cancel(first);
        first.fire(now);
      }
    }
    return count;
  }

  /** Sorts the first timer in anew, after it was moved later. */
  #settle(first: Timer): void {
    first.heapDeadlineMs = first.deadlineMs;
    this.#siftDown(first);
  }

  #remove(timer: Timer): void {
    const last = this.#heap.pop()!;
    if (last !== timer) {
      this.#place(last, timer.heapIndex);
      this.#siftUp(last);
      this.#siftDown(last);
    }
    timer.heapIndex = -1;
  }

  #place(timer: Timer, index: number): void {
    this.#heap[index] = timer;
    timer.heapIndex = index;
  }

  #siftUp(timer: Timer): void {
    while (timer.heapIndex > 0) {
      const parentIndex = (timer.heapIndex - 1) >> 1;
      const parent = this.#heap[parentIndex]!;
      if (parent.heapDeadlineMs <= timer.heapDeadlineMs) return;
      this.#place(parent, timer.heapIndex);
      this.#place(timer, parentIndex);
    }
  }

  #siftDown(timer: Timer): void {
    for (;;) {
      let childIndex = 2 * timer.heapIndex + 1;
      if (childIndex >= this.#heap.length) return;
      const right = this.#heap[childIndex + 1];
      if (right !== undefined && right.heapDeadlineMs < this.#heap[childIndex]!.heapDeadlineMs) {
        childIndex++;
      }
      const child = this.#heap[childIndex]!;
      if (child.heapDeadlineMs >= timer.heapDeadlineMs) return;
      this.#place(child, timer.heapIndex);
      this.#place(timer, childIndex);
    }
  }
}
