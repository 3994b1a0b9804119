import type { Journal } from '../log/journal.ts';
import type { LogFile } from '../log/journal-file.ts';
import type { StateMachine } from '../state/state-machine.ts';

/** Where the search for something alive in a file goes on. */
interface Cursor {
  block: number;
  row: number;
}

export interface Removed {
  readonly files: readonly LogFile[];
  /** In others nothing is alive either, but something needs them. */
  readonly isMoreDead: boolean;
}

/**
 * Finds sealed journal files in which nothing is alive any more: every record lies below its
 * partition's log start, or the partition is gone. What is dead stays dead, so the search goes
 * through each file's index once in its life, from one living extent to the next.
 */
export class FileReaper {
  readonly #journal: Journal;
  readonly #state: StateMachine;
  readonly #cursors = new WeakMap<LogFile, Cursor>();

  constructor(journal: Journal, state: StateMachine) {
    this.#journal = journal;
    this.#state = state;
  }

  /**
   * Removes dead files that lie wholly before `position` (a durable snapshot's) and have nothing
   * after the entry `index`, and answers them in their order, and whether others have to wait.
   */
  async removeDead(position: number, index: number): Promise<Removed> {
    const dead: LogFile[] = [];
    let isMoreDead = false;
    for (const [i, logFile] of this.#journal.logFiles.slice(0, -1).entries()) {
      if (logFile.end > position || logFile.index === undefined) continue;
      if (!(await this.#isDead(logFile))) continue;
      if (logFile.lastIndex > index || (logFile.header.voids && i > 0)) isMoreDead = true;
      else dead.push(logFile);
    }
    // What they died of must be on disk before they go.
    if (dead.length > 0) await this.#journal.flush();
    await this.#journal.remove(dead);
    return { files: dead, isMoreDead };
  }

  async #isDead(logFile: LogFile): Promise<boolean> {
    const cursor = this.#cursors.get(logFile) ?? { block: 0, row: 0 };
    this.#cursors.set(logFile, cursor);
    const index = logFile.index!;
    const { partitions } = this.#state.topics;
    for (; cursor.block < index.blocks; cursor.block++, cursor.row = 0) {
      const block = await index.readBlock(cursor.block);
      for (; cursor.row < block.rows; cursor.row++) {
        const partition = block.partition(cursor.row);
        if (!partitions.exists(partition)) continue;
        if (block.endOffset(cursor.row) > partitions.logStart(partition)) return false;
      }
    }
    return true;
  }
}
