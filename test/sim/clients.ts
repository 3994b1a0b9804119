import type { Replica } from '../../src/replica/replica.ts';

/** What clients do in a simulated cluster, and what they may rely on. */
export interface Clients {
  /** Something happens that clients do of their own accord. */
  act(): void;
  /** A process goes on that was stopped: requests that came meanwhile are read first. */
  onResumed(replica: Replica): void;
  /** Everything works again: they come to their end. Called again and again. */
  finish(round: number): void;
  /** Nobody waits for anything any more. */
  readonly isDone: boolean;
  /** What must hold in the end. */
  check(): void;
  describe(): string;
}
