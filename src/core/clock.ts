/** Time and timers as ports: the core never reads them from the platform, so tests can own them. */

export type CancelTimer = () => void;

export interface Clock {
  /** Milliseconds that only ever grow; for timeouts and leases. May have a fraction. */
  monotonicMs(): number;
  /** Milliseconds since 1970, as the machine believes; may jump. Whole number. */
  wallMs(): number;
  /** Calls back once after `delayMs`, in a turn of its own. */
  after(delayMs: number, callback: () => void): CancelTimer;
  /** Calls back once, in a turn of its own, after the input that has already arrived. */
  soon(callback: () => void): void;
}

/** Longer timers of the platform run at once; 24 days. */
const timerMsMax = 2 ** 31 - 1;

/** The machine's own clock. Timers do not keep the process alive. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(delayMs, callback) {
    let timer: NodeJS.Timeout;
    const wait = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, timerMsMax);
      const onTime = () => (stepMs < leftMs ? wait(leftMs - stepMs) : callback());
      timer = setTimeout(onTime, stepMs);
      timer.unref();
    };
    wait(delayMs);
    return () => clearTimeout(timer);
  },
  soon: (callback) => void setImmediate(callback),
};
