import type { Clock } from '../core/clock.ts';

interface Waiting {
  readonly cancel: () => void;
  readonly done: () => void;
}

/** Those who wait until a leader that was dozing may answer again. */
export class Awaking {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls back once: when told to, or after this time. */
  add(timeoutMs: number, done: () => void): void {
    const cancel = this.#clock.after(timeoutMs, () => this.#end(waiting));
    const waiting = { cancel, done };
    this.#waiting.add(waiting);
  }

  get size(): number {
    return this.#waiting.size;
  }

  endAll(): void {
    for (const waiting of [...this.#waiting]) this.#end(waiting);
  }

  #end(waiting: Waiting): void {
    if (!this.#waiting.delete(waiting)) return;
    waiting.cancel();
    waiting.done();
  }
}
