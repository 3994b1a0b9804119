import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';

/** A defect would show at every record: one line a minute says as much. */
const logMsMin = 60_000;

/** What is checked while the broker runs. A violation is a defect of the broker. */
export const invariantNames = [
  /** A record that leaves is granted, and its key is held by the range that it leaves in. */
  'holder',
  /** What members are counted to have in hand is what the ledger says. */
  'books',
] as const;
export type InvariantName = (typeof invariantNames)[number];

/** Counts checks of invariants, which shows that they run, and violations, which stay zero. */
export class Invariants {
  readonly checks: Record<InvariantName, number> = { holder: 0, books: 0 };
  readonly violations: Record<InvariantName, number> = { holder: 0, books: 0 };
  readonly #clock: Clock;
  readonly #log: Logger;
  #loggedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  violated(name: InvariantName, facts: () => object): void {
    this.violations[name]++;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#loggedMs < logMsMin) return;
    this.#loggedMs = nowMs;
    this.#log.error(
      { invariant: name, violations: this.violations[name], ...facts() },
      'an invariant of keyed delivery is violated: this is a defect of the broker',
    );
  }
}
