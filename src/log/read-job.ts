/** What read-thread.ts and read-worker.ts tell each other. */

export interface ReadJob {
  readonly id: number;
  readonly buffers: readonly SharedArrayBuffer[];
  /** For each read: the file, the index of the buffer, where in it, how many bytes, from where. */
  readonly places: Float64Array;
}

export const numbersPerRead = 5;

export interface ReadDone {
  readonly id: number;
  /** Reads that are done, from the first one on. */
  readonly done: number;
  /** The error of the one after them, if that is why it ended. */
  readonly code: string | undefined;
}
