import type { Clock } from '../core/clock.ts';
import { encodeGroupImageInSlices, type GroupImage } from '../groups/group-image.ts';
import type { Replica } from '../replica/replica.ts';
import { encodeGroupDeleted, encodeGroupStored } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';

/** What a group is to be from now on; null: it is deleted. */
interface Job {
  readonly groupId: string;
  readonly slices: Generator<undefined, Buffer> | null;
  readonly done: (isDurable: boolean) => void;
}

/**
 * Writes groups to the journal, in the order of the calls. Those of few members at once; the image
 * of a large one takes several turns of the event loop, and what comes meanwhile waits behind it.
 */
export class StoredGroups {
  readonly #clock: Clock;
  readonly #replica: Pick<Replica, 'propose'>;
  readonly #waiting: Job[] = [];

  constructor(clock: Clock, replica: Pick<Replica, 'propose'>) {
    this.#clock = clock;
    this.#replica = replica;
  }

  store(groupId: string, image: GroupImage | null, done: (isDurable: boolean) => void): void {
    const slices = image === null ? null : encodeGroupImageInSlices(image);
    this.#waiting.push({ groupId, slices, done });
    if (this.#waiting.length === 1) this.#run();
  }

  #run(): void {
    for (let job = this.#waiting[0]; job !== undefined; job = this.#waiting[0]) {
      const next = job.slices?.next();
      if (next !== undefined && next.done !== true) {
        this.#clock.soon(() => this.#run());
        return;
      }
      this.#waiting.shift();
      const { groupId, done } = job;
      const command =
        next === undefined
          ? { type: EntryType.groupDeleted, meta: encodeGroupDeleted(groupId) }
          : {
              type: EntryType.groupStored,
              meta: encodeGroupStored({ groupId, image: next.value }),
            };
      this.#replica.propose(command, (outcome) => done(outcome === 'applied'));
    }
  }
}
