import type { CancelTimer, Clock } from '../../src/core/clock.ts';
import type { Random } from '../../src/core/random.ts';

/** What is waited for and has not come after this time does not come any more. */
const hangMs = 60_000;

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
  isCancelled: boolean;
}

/**
 * A clock that stands still until it is told to go on, and the scheduler of a simulation: what was
 * asked for with `soon` runs in order, completions of simulated devices (`defer`) in an order that
 * the seed decides. One `step` runs one of them and everything that follows from it.
 */
export class SimClock implements Clock {
  readonly #random: Random;
  #monotonicMs = 0;
  #wallMs: number;
  #soon: (() => void)[] = [];
  #deferred: (() => void)[] = [];
  /** The next one to come due is the last. */
  #timers: Timer[] = [];

  constructor(random: Random, wallMs = 1_700_000_000_000) {
    this.#random = random;
    this.#wallMs = wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  soon(callback: () => void): void {
    this.#soon.push(callback);
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    const timer = { dueMs: this.#monotonicMs + delayMs, callback, isCancelled: false };
    // Behind those that are due at the same time.
    let [low, high] = [0, this.#timers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#timers[middle]!.dueMs > timer.dueMs) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
    return () => {
      timer.isCancelled = true;
    };
  }

  /** A device is done with something: runs in some later step, in any order. */
  defer(callback: () => void): void {
    this.#deferred.push(callback);
  }

  /** Forgets everything that was to happen: the machine went down. */
  clear(): void {
    this.#soon = [];
    this.#deferred = [];
    this.#timers = [];
  }

  get busy(): boolean {
    return this.#soon.length + this.#deferred.length > 0;
  }

  /** Runs one thing that is ready, then all promise reactions; false when there is nothing. */
  async step(): Promise<boolean> {
    const ready = Math.min(1, this.#soon.length) + this.#deferred.length;
    if (ready === 0) return false;
    const chosen = Math.floor(this.#random.next() * ready) - Math.min(1, this.#soon.length);
    if (chosen < 0) this.#soon.shift()!();
    else this.#deferred.splice(chosen, 1)[0]!();
    await reactions();
    return true;
  }

  /** Steps until nothing is left that would happen without time passing. */
  async settle(): Promise<void> {
    await reactions();
    while (await this.step());
  }

  /** Steps until the promise is settled; time passes only when nothing else can happen. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let done = false;
    const started = this.#monotonicMs;
    promise.then(
      () => {
        done = true;
      },
      () => {
        done = true;
      },
    );
    await reactions();
    while (!done) {
      if (await this.step()) continue;
      const waited = this.#monotonicMs - started;
      const next = this.#next();
      if (next === undefined || waited > hangMs) throw new Error('the simulation hangs');
      await this.advance(next.dueMs - this.#monotonicMs);
    }
    return promise;
  }

  /** Lets time pass; timers that come due run in their order, each followed by its reactions. */
  async advance(ms: number): Promise<void> {
    const until = this.#monotonicMs + ms;
    for (let due = this.#next(); due !== undefined && due.dueMs <= until; due = this.#next()) {
      this.#timers.pop();
      this.#moveTo(due.dueMs);
      due.callback();
      await reactions();
    }
    this.#moveTo(until);
  }

  #next(): Timer | undefined {
    while (this.#timers.at(-1)?.isCancelled === true) this.#timers.pop();
    return this.#timers.at(-1);
  }

  #moveTo(ms: number): void {
    this.#wallMs += Math.max(0, ms - this.#monotonicMs);
    this.#monotonicMs = Math.max(this.#monotonicMs, ms);
  }
}

/** Promise reactions all run before the next turn of the real event loop. */
export function reactions(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
