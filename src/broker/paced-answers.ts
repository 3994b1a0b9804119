import type { Clock } from '../core/clock.ts';

/** Each takes some 3 µs; one to the leader of a large group takes milliseconds. */
const perTurnMax = 256;

/**
 * Answers that become due all at once: the end of a round of a group answers all of its members.
 * They are encoded and sent in order, some in each turn of the event loop.
 */
export class PacedAnswers {
  readonly #clock: Clock;
  #left = perTurnMax;
  #isScheduled = false;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sends what it is called with, now or in its turn. */
  paced<T>(answer: (response: T) => void): (response: T) => void {
    return (response) => {
      if (this.#left > 0) this.#send(() => answer(response));
      else this.#waiting.push(() => answer(response));
    };
  }

  #send(send: () => void): void {
    this.#left--;
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      this.#clock.soon(() => this.#onTurn());
    }
    send();
  }

  #onTurn(): void {
    this.#isScheduled = false;
    const due = this.#waiting.splice(0, perTurnMax);
    // What these bring about comes after what waits.
    this.#left = perTurnMax - due.length;
    if (due.length === 0) return;
    this.#isScheduled = true;
    this.#clock.soon(() => this.#onTurn());
    for (const send of due) send();
  }
}
