/**
 * The bytes that all connections together may hold. It decides who may go on reading when they
 * are used up, so that nothing starves and nothing deadlocks:
 *
 * - Whoever must wait is woken in the order of coming, as soon as there is room again.
 * - One waiter at a time, the elder, is let through in spite of the bound. So even when all the
 *   room is held by unfinished frames, one of them is finished, answered and freed.
 *
 * Requests that are small and alone on their connection do not ask here at all (see connection.ts).
 */

export interface BudgetWaiter {
  /** True while it waits for an answer of its own, which will free room without any help. */
  readonly busy: boolean;
  /** There may be room: read on, or wait again. */
  wake(): void;
}

/** What a socket gives per read at most; so much may come from each waiter that is woken. */
export const readBytesMax = 64 * 1024;

export class ByteBudget {
  readonly bytesMax: number;
  #bytes = 0;
  readonly #waiting = new Set<BudgetWaiter>();
  #elder: BudgetWaiter | null = null;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get exhausted(): boolean {
    return this.#bytes >= this.bytesMax;
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  add(delta: number): void {
    this.#bytes += delta;
  }

  /** Whether `waiter` may read on now. If not, it is woken later. */
  admits(waiter: BudgetWaiter): boolean {
    if (!this.exhausted) return true;
    if (!waiter.busy && (this.#elder === null || this.#elder === waiter)) {
      this.#elder = waiter;
      return true;
    }
    this.#waiting.add(waiter);
    return false;
  }

  /** The waiter is gone, or has no unanswered request any more. */
  release(waiter: BudgetWaiter, gone: boolean): void {
    if (gone) this.#waiting.delete(waiter);
    if (this.#elder === waiter) this.#elder = null;
  }

  /** Wakes as many as there is room for. To be called when bytes or the elder were released. */
  wakeWaiters(): void {
    if (this.#waiting.size === 0) return;
    if (this.exhausted) {
      if (this.#elder === null) this.#wakeOneIdle();
      return;
    }
    let places = Math.ceil((this.bytesMax - this.#bytes) / readBytesMax);
    for (const waiter of this.#waiting) {
      if (places === 0) return;
      places -= 1;
      this.#waiting.delete(waiter);
      waiter.wake();
    }
  }

  #wakeOneIdle(): void {
    for (const waiter of this.#waiting) {
      if (waiter.busy) continue;
      this.#waiting.delete(waiter);
      waiter.wake();
      return;
    }
  }
}
