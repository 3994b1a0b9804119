import type { Clock } from '../core/clock.ts';
import type { LogStart } from '../state/commands.ts';
import type { Outcome } from './group-commit.ts';
import type { Replica } from './replica.ts';
import type { TopicPlanner } from './topic-planner.ts';

/** Extents that are passed over in one turn of the event loop. */
export const extentsPerTurn = 10_000;

/**
 * Moves log starts up: the one place where it is done, one move after the other. A move says how
 * many bytes it drops, counted from the present log start, so no two may be measured at a time.
 */
export class LogStarts {
  readonly #replica: Replica;
  readonly #topics: TopicPlanner;
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();

  constructor(replica: Replica, topics: TopicPlanner, clock: Clock) {
    this.#replica = replica;
    this.#topics = topics;
    this.#clock = clock;
  }

  /** Moves what `find` finds once it is its turn; partitions that are gone by then are left out. */
  move(find: () => Promise<readonly LogStart[]>): Promise<Outcome> {
    const moved = this.#last.then(async () => {
      const found = await find();
      // In the turn of the proposal: a topic that is being deleted takes no more entries.
      const live = found.filter(({ partition }) => this.isLive(partition));
      return live.length === 0 ? 'applied' : this.#topics.moveLogStarts(live);
    });
    this.#last = moved;
    return moved;
  }

  /** Moves log starts to offsets, none of which is above the end of its partition. */
  moveTo(offsets: ReadonlyMap<number, number>): Promise<Outcome> {
    return this.move(async () => {
      const starts: LogStart[] = [];
      for (const [partition, offset] of offsets) {
        if (!this.isLive(partition)) continue;
        if (offset <= this.#replica.state.topics.partitions.logStart(partition)) continue;
        const droppedBytes = await this.#bytesBelow(partition, offset);
        starts.push({ partition, offset, droppedBytes });
      }
      return starts;
    });
  }

  isLive(partition: number): boolean {
    const topic = this.#replica.state.topics.partitions.topic(partition);
    return topic !== undefined && this.#topics.byId(topic.id) !== undefined;
  }

  /** Bytes of the batches that lie wholly below the offset and not below the present log start. */
  async #bytesBelow(partition: number, offset: number): Promise<number> {
    let bytes = 0;
    let from = this.#replica.state.topics.partitions.logStart(partition);
    for (;;) {
      let left = extentsPerTurn;
      let isOver = true;
      await this.#replica.journal.extents.walkLoading(
        { partition, start: { offset: from } },
        (baseOffset, count, _maxTimestamp, _epoch, _position, size) => {
          if (baseOffset + count > offset) return false;
          bytes += size;
          from = baseOffset + count;
          isOver = --left > 0;
          return isOver;
        },
      );
      if (isOver) return bytes;
      await new Promise<void>((resolve) => this.#clock.soon(resolve));
    }
  }
}
