import type { ReadPlan } from '../log/log-reader.ts';
import type { ErrorCode } from '../protocol/error-codes.ts';

const initial = 64;
const noPlan = -1;

/** What a look found in partitions, in its order and in columns: an error, or batches to read. */
export class FoundPartitions {
  /** Of those that have batches, in order. */
  readonly plans: ReadPlan[] = [];
  #count = 0;
  #row = new Int32Array(initial);
  #errorCode = new Int16Array(initial);
  #highWatermark = new Float64Array(initial);
  #logStart = new Float64Array(initial);
  /** Which of the plans. */
  #plan = new Int32Array(initial);

  get count(): number {
    return this.#count;
  }

  add(
    row: number,
    errorCode: ErrorCode,
    highWatermark: number,
    logStart: number,
    plan: ReadPlan | undefined,
  ): void {
    const at = this.#count++;
    if (at === this.#row.length) this.#grow();
    this.#row[at] = row;
    this.#errorCode[at] = errorCode;
    this.#highWatermark[at] = highWatermark;
    this.#logStart[at] = logStart;
    this.#plan[at] = plan === undefined ? noPlan : this.plans.push(plan) - 1;
  }

  row(at: number): number {
    return this.#row[at]!;
  }
  errorCode(at: number): ErrorCode {
    return this.#errorCode[at]! as ErrorCode;
  }
  highWatermark(at: number): number {
    return this.#highWatermark[at]!;
  }
  logStart(at: number): number {
    return this.#logStart[at]!;
  }
  hasRecords(at: number): boolean {
    return this.#plan[at] !== noPlan;
  }
  /** Its part of what was read for `plans`. */
  of<T>(at: number, read: readonly T[]): T | undefined {
    return read[this.#plan[at]!];
  }

  #grow(): void {
    const count = this.#row.length * 2;
    this.#row = copied(this.#row, new Int32Array(count));
    this.#errorCode = copied(this.#errorCode, new Int16Array(count));
    this.#highWatermark = copied(this.#highWatermark, new Float64Array(count));
    this.#logStart = copied(this.#logStart, new Float64Array(count));
    this.#plan = copied(this.#plan, new Int32Array(count));
  }
}

function copied<T extends Int16Array | Int32Array | Float64Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
