import type { Clock } from '../core/clock.ts';

export interface SnapshotTriggerOptions {
  readonly clock: Clock;
  /** Journal bytes after which a snapshot is due, as long as images are no larger. */
  readonly journalBytesMin: number;
  /** Of the snapshot that the node started from; 0 if there is none. */
  readonly imageBytes: number;
}

/**
 * So many times as much journal as for small images may have to be read again at a start, however
 * large the image is: what is saved by writing fewer snapshots is not to be lost then.
 */
const journalFactorMax = 8;
/** What is written for deletions, on average: an image of 20 MiB every five seconds. */
const deletionBytesPerSecond = 4 * 1024 * 1024;
/** So late at most are files removed in which nothing is alive any more. */
const deletionDelayMsMax = 600_000;

/**
 * When a snapshot is worth its bytes. An image has everything in it, so one that is large is
 * written less often: no more than about one byte of image for each byte of journal, and after
 * deletions no more than some bytes per second.
 */
export class SnapshotTrigger {
  readonly #clock: Clock;
  readonly #journalBytesMin: number;
  #imageBytes: number;
  #writtenMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, journalBytesMin, imageBytes }: SnapshotTriggerOptions) {
    this.#clock = clock;
    this.#journalBytesMin = journalBytesMin;
    this.#imageBytes = imageBytes;
  }

  /** So much journal has been written since the newest snapshot. */
  isDue(journalBytes: number): boolean {
    const min = this.#journalBytesMin;
    return journalBytes >= Math.max(min, Math.min(this.#imageBytes, min * journalFactorMax));
  }

  /** May one be written now only because something was deleted? */
  get mayFollowDeletions(): boolean {
    const restMs = (this.#imageBytes / deletionBytesPerSecond) * 1000;
    const sinceMs = this.#clock.monotonicMs() - this.#writtenMs;
    return sinceMs >= Math.min(restMs, deletionDelayMsMax);
  }

  onWritten(imageBytes: number): void {
    this.#imageBytes = imageBytes;
    this.#writtenMs = this.#clock.monotonicMs();
  }
}
