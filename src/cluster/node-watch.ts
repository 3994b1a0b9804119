import type { Clock } from '../core/clock.ts';

export interface NodeWatchOptions {
  readonly clock: Clock;
  /** How often each node is asked, and how long it may take to answer. */
  readonly timeoutMs: number;
  /** Those that there is a connection to. */
  readonly connected: () => Iterable<number>;
  /** Resolves when the node has answered, whatever it says. */
  readonly ask: (nodeId: number) => Promise<unknown>;
  /** It has a connection, and does not answer. */
  readonly onSilent: (nodeId: number) => void;
}

/**
 * Notices nodes that are silent though their connection is there, as it is for minutes when the
 * network is cut. Groups in which nothing happens do not notice it themselves for long.
 */
export class NodeWatch {
  readonly #options: NodeWatchOptions;
  /** Asked, and not answered yet. */
  readonly #open = new Set<number>();
  #cancel: (() => void) | undefined;

  constructor(options: NodeWatchOptions) {
    this.#options = options;
  }

  start(): void {
    const { clock, timeoutMs } = this.#options;
    this.#cancel = clock.after(timeoutMs, () => {
      for (const nodeId of this.#options.connected()) this.#look(nodeId);
      this.start();
    });
  }

  stop(): void {
    this.#cancel?.();
  }

  #look(nodeId: number): void {
    const { ask, onSilent } = this.#options;
    if (this.#open.has(nodeId)) {
      onSilent(nodeId);
      return;
    }
    this.#open.add(nodeId);
    void ask(nodeId).then(() => this.#open.delete(nodeId));
  }
}
