/**
 * Collects what is to be done once when the present turn of the event loop has run its course: so
 * all answers that become ready in one turn leave in one write, and reading resumes outside of the
 * call that made room for it.
 */
export interface TurnTaker {
  onTurnEnd(): void;
}

export class TurnEnd {
  #takers: TurnTaker[] = [];
  #scheduled = false;
  readonly #last: () => void;

  /** `last` runs after all others, each time. */
  constructor(last: () => void) {
    this.#last = last;
  }

  add(taker: TurnTaker): void {
    this.#takers.push(taker);
    this.schedule();
  }

  /** Makes sure that `last` runs. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    process.nextTick(this.#run);
  }

  readonly #run = (): void => {
    this.#scheduled = false;
    const takers = this.#takers;
    this.#takers = [];
    for (const taker of takers) taker.onTurnEnd();
    this.#last();
  };
}
