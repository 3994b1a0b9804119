/**
 * The bytes that all connections together may hold. It decides who may go on reading when they
 * are used up, so that nothing starves and nothing deadlocks:
 *
 * - Whoever must wait is woken in the order of coming as soon as there is room again, and nobody
 *   overtakes.
 * - One waiter at a time that has no request in flight, the elder, is let through in spite of the
 *   bound. So even when all the room is held by unfinished frames, one of them is finished,
 *   answered and freed. What elders have had dispatched and is not yet answered is their debt,
 *   and has a bound too.
 *
 * Requests that are small and alone on their connection do not ask here at all (see connection.ts).
 */

export interface BudgetWaiter {
  /** True while it has requests in flight, which will free room without any help. */
  readonly busy: boolean;
  /** It may read on: `admits` is to be asked with `woken` set. */
  wake(): void;
}

/** What a socket gives per read at most; so much may come from each waiter that is woken. */
export const readBytesMax = 128 * 1024;

export class ByteBudget {
  readonly bytesMax: number;
  readonly debtBytesMax: number;
  #bytes = 0;
  readonly #waiting = new Set<BudgetWaiter>();
  #elder: BudgetWaiter | null = null;
  readonly #debts = new Map<BudgetWaiter, number>();
  #debtBytes = 0;

  constructor(bytesMax: number, debtBytesMax: number) {
    this.bytesMax = bytesMax;
    this.debtBytesMax = debtBytesMax;
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

  /** Whether `waiter` may read on now. If not, it is woken by a later `wakeWaiters`. */
  admits(waiter: BudgetWaiter, woken: boolean): boolean {
    if (this.#elder === waiter && !waiter.busy) return true;
    if (!this.exhausted && (woken || this.#waiting.size === 0)) return true;
    this.#waiting.add(waiter);
    return false;
  }

  /** A frame of the waiter has arrived whole. If it was the elder, the next one may follow it. */
  onDispatched(waiter: BudgetWaiter, bytes: number): void {
    if (this.#elder !== waiter) return;
    this.#elder = null;
    this.#debts.set(waiter, bytes);
    this.#debtBytes += bytes;
  }

  /** The waiter has nothing in flight any more. */
  onAnswered(waiter: BudgetWaiter): void {
    const debt = this.#debts.size === 0 ? undefined : this.#debts.get(waiter);
    if (debt === undefined) return;
    this.#debts.delete(waiter);
    this.#debtBytes -= debt;
  }

  /** The waiter does not need to be let through any more. */
  leave(waiter: BudgetWaiter): void {
    this.#waiting.delete(waiter);
    if (this.#elder === waiter) this.#elder = null;
  }

  /** The waiter is gone. */
  forget(waiter: BudgetWaiter): void {
    this.leave(waiter);
    this.onAnswered(waiter);
  }

  /** Wakes as many as there is room for; to be called after changes, and now and then. */
  wakeWaiters(): void {
    if (this.#waiting.size === 0) return;
    if (this.exhausted) {
      if (this.#elder === null && this.#debtBytes < this.debtBytesMax) this.#chooseElder();
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

  #chooseElder(): void {
    for (const waiter of this.#waiting) {
      if (waiter.busy) continue;
      this.#elder = waiter;
      this.#waiting.delete(waiter);
      waiter.wake();
      return;
    }
  }
}
