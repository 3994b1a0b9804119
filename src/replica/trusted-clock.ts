import type { Clock } from '../core/clock.ts';

/** What the wall clock may be off since the last look. Slewing by NTP is far below it. */
const disagreementMsMax = 60_000;

export interface TrustedClockOptions {
  readonly clock: Clock;
  /** `clock.settle.ms` */
  readonly settleMs: number;
  /** Told once per jump: by how much the wall clock is ahead (or, below zero, behind). */
  readonly onDistrust: (aheadMs: number) => void;
  /** Told when it is believed again. */
  readonly onTrust: () => void;
}

/**
 * Whether the wall clock may be believed when something is about to be deleted because of its
 * age. A machine whose clock jumps by ten years would otherwise delete everything that it has.
 *
 * At each look the wall clock is compared with where it should be: where it was when it was last
 * believed, plus the monotonic time since. After a jump that place is kept, so a clock that merely
 * runs steadily at the wrong time is not believed, however long; only one that came back and
 * stayed for `settleMs`. An operator who knows better says so by `confirm` or by a restart: the
 * first look of a process has nothing to compare with.
 *
 * (The monotonic clock stands still while a machine is suspended: a laptop that slept counts as
 * one whose clock was set.)
 */
export class TrustedClock {
  readonly #options: TrustedClockOptions;
  #anchorWallMs = 0;
  #anchorMonotonicMs = 0;
  #isTrusted = true;
  /** Since when the clocks agree again after a jump; undefined while they do not. */
  #agreedSinceMs: number | undefined;

  constructor(options: TrustedClockOptions) {
    this.#options = options;
    this.confirm();
  }

  /** By how much the wall clock is ahead of where it should be. */
  get aheadMs(): number {
    const { clock } = this.#options;
    const passedMs = clock.monotonicMs() - this.#anchorMonotonicMs;
    return clock.wallMs() - (this.#anchorWallMs + passedMs);
  }

  /** A look at the clocks: may anything be deleted now because of its age? */
  mayExpire(): boolean {
    const { aheadMs } = this;
    const agrees = Math.abs(aheadMs) <= disagreementMsMax;
    if (this.#isTrusted) {
      if (agrees) this.#anchor();
      else this.#distrust(aheadMs);
    } else if (!agrees) {
      this.#agreedSinceMs = undefined;
    } else if (this.#hasSettled()) {
      this.confirm();
      this.#options.onTrust();
    }
    return this.#isTrusted;
  }

  /** Believes the wall clock as it is now. */
  confirm(): void {
    this.#isTrusted = true;
    this.#agreedSinceMs = undefined;
    this.#anchor();
  }

  #distrust(aheadMs: number): void {
    this.#isTrusted = false;
    this.#options.onDistrust(aheadMs);
  }

  #hasSettled(): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    this.#agreedSinceMs ??= nowMs;
    return nowMs - this.#agreedSinceMs >= this.#options.settleMs;
  }

  #anchor(): void {
    this.#anchorWallMs = this.#options.clock.wallMs();
    this.#anchorMonotonicMs = this.#options.clock.monotonicMs();
  }
}
