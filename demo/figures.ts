import { waitMsMin } from './plan.ts';

/**
 * What is known of one round. It is told when records are sent, begun and done, and answers what
 * the drawing shows. It has no clock: all times come in, in milliseconds since the round began.
 *
 * `quick` records are those that are measured. `own` ones are later records of the slow one's key,
 * which have to wait for it in any delivery.
 */
export type Kind = 'quick' | 'slow' | 'own';

/** How much of one slice of time a consumer spent on what. */
export interface Slice {
  quickMs: number;
  slowMs: number;
}

/** The longest that a quick record had been waiting at one moment. */
export interface WaitSample {
  readonly atMs: number;
  readonly waitMs: number;
}

interface Work {
  readonly kind: Kind;
  sinceMs: number;
}

interface Lane {
  readonly slices: Slice[];
  done: number;
  work: Work | undefined;
}

export interface Summary {
  readonly quickRecords: number;
  /** Quick records that came to the slow one's consumer before that was done, and had to wait. */
  readonly behindSlow: number;
  readonly behindSlowMsMax: number;
  readonly waitMsP50: number;
  readonly waitMsP99: number;
  readonly waitMsMax: number;
}

export class Figures {
  readonly consumers: readonly Lane[];
  readonly samples: WaitSample[] = [];
  /** By number of the record. */
  readonly #sentMs: number[] = [];
  readonly #kinds: Kind[] = [];
  readonly #begunMs: (number | undefined)[] = [];
  readonly #begunBy: (number | undefined)[] = [];
  readonly #columnMs: number;
  #oldest = 0;
  #begunCount = 0;
  #doneCount = 0;
  #slow: { consumer: number; begunMs: number; doneMs: number | undefined } | undefined;
  #nowMs = 0;

  constructor(consumers: number, columnMs: number) {
    this.#columnMs = columnMs;
    this.consumers = Array.from({ length: consumers }, () => ({
      slices: [],
      done: 0,
      work: undefined,
    }));
  }

  /** Answers the number of the record. */
  sent(kind: Kind, atMs: number): number {
    this.#kinds.push(kind);
    this.#begunMs.push(undefined);
    this.#begunBy.push(undefined);
    return this.#sentMs.push(atMs) - 1;
  }

  /** A record that comes a second time counts as work, and not as another wait. */
  begun(record: number, consumer: number, atMs: number): void {
    const kind = this.#kinds[record];
    const lane = this.consumers[consumer];
    if (kind === undefined || lane === undefined) return;
    lane.work = { kind, sinceMs: atMs };
    if (kind === 'slow') this.#slow ??= { consumer, begunMs: atMs, doneMs: undefined };
    if (this.#begunMs[record] !== undefined) return;
    this.#begunMs[record] = atMs;
    this.#begunBy[record] = consumer;
    this.#begunCount += 1;
  }

  done(record: number, consumer: number, atMs: number): void {
    const lane = this.consumers[consumer];
    if (lane?.work === undefined) return;
    this.#account(lane, atMs);
    lane.work = undefined;
    lane.done += 1;
    this.#doneCount += 1;
    if (this.#kinds[record] === 'slow' && this.#slow !== undefined) this.#slow.doneMs ??= atMs;
  }

  /** Brings everything that grows with time up to now, and notes how long records wait. */
  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    for (const lane of this.consumers) this.#account(lane, nowMs);
    this.samples.push({ atMs: nowMs, waitMs: this.waitMsNow });
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Every record that was sent has been done. */
  get isDrained(): boolean {
    return this.#doneCount >= this.#sentMs.length;
  }

  /** Records that are sent and not begun. */
  get waiting(): number {
    return this.#sentMs.length - this.#begunCount;
  }

  get slow():
    | { readonly consumer: number; readonly ms: number; readonly isDone: boolean }
    | undefined {
    if (this.#slow === undefined) return undefined;
    const { consumer, begunMs, doneMs } = this.#slow;
    return { consumer, ms: (doneMs ?? this.#nowMs) - begunMs, isDone: doneMs !== undefined };
  }

  /** Later records of the slow one's key that are not begun. */
  get ownWaiting(): number {
    return this.#kinds.filter((kind, record) => kind === 'own' && this.#isWaiting(record)).length;
  }

  /** How long the quick record that has waited longest has done so. */
  get waitMsNow(): number {
    while (this.#oldest < this.#sentMs.length && !this.#isWaitingQuick(this.#oldest)) {
      this.#oldest += 1;
    }
    const sentMs = this.#sentMs[this.#oldest];
    return sentMs === undefined ? 0 : Math.max(0, this.#nowMs - sentMs);
  }

  summary(): Summary {
    const waits: number[] = [];
    const behind: number[] = [];
    for (const [record, sentMs] of this.#sentMs.entries()) {
      if (this.#kinds[record] !== 'quick') continue;
      const waitMs = (this.#begunMs[record] ?? this.#nowMs) - sentMs;
      waits.push(waitMs);
      if (waitMs >= waitMsMin && this.#isBehindSlow(record, sentMs)) behind.push(waitMs);
    }
    waits.sort((a, b) => a - b);
    return {
      quickRecords: waits.length,
      behindSlow: behind.length,
      behindSlowMsMax: behind.reduce((most, waitMs) => Math.max(most, waitMs), 0),
      waitMsP50: waits[waits.length >> 1] ?? 0,
      waitMsP99: waits[Math.floor(waits.length * 0.99)] ?? 0,
      waitMsMax: waits.at(-1) ?? 0,
    };
  }

  #isWaiting(record: number): boolean {
    return this.#begunMs[record] === undefined;
  }

  /** A record of the slow one's key ends no search for the oldest: it may wait. */
  #isWaitingQuick(record: number): boolean {
    return this.#kinds[record] === 'quick' && this.#isWaiting(record);
  }

  #isBehindSlow(record: number, sentMs: number): boolean {
    const doneMs = this.#slow?.doneMs;
    const begunMs = this.#begunMs[record];
    if (doneMs === undefined || begunMs === undefined) return false;
    return this.#begunBy[record] === this.#slow?.consumer && sentMs < doneMs && begunMs >= doneMs;
  }

  /** Spreads what a consumer has worked since it was last looked at over the slices of time. */
  #account(lane: Lane, nowMs: number): void {
    const last = Math.floor(nowMs / this.#columnMs);
    while (lane.slices.length <= last) lane.slices.push({ quickMs: 0, slowMs: 0 });
    if (lane.work === undefined) return;
    const { kind, sinceMs } = lane.work;
    for (let at = sinceMs; at < nowMs; ) {
      const column = Math.floor(at / this.#columnMs);
      // Rounding may put the end of a slice into the slice itself.
      const end = Math.min(nowMs, Math.max((column + 1) * this.#columnMs, at + 1e-6));
      const slice = lane.slices[column]!;
      if (kind === 'slow') slice.slowMs += end - at;
      else slice.quickMs += end - at;
      at = end;
    }
    lane.work.sinceMs = nowMs;
  }
}
