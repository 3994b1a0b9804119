import type { StoredEntry } from '../log/format.ts';
import type { Replica } from '../replica/replica.ts';
import { decodeLogStarts } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';

/** Something that wants to know when there is more to read in a partition. */
export interface AppendWaiter {
  /** Called as entries are applied; cheap, and answers nothing yet. `bytes` is 0 for other news. */
  onAppended(bytes: number): void;
  /** Called once after the group of entries in which `onAppended` was called. */
  onGroupApplied(): void;
}

/** Who waits for which partition: parked fetches and fetch sessions. */
export class FetchWaiters {
  /** One registration as it is: most partitions have a single reader, and a set costs 200 bytes. */
  readonly #byPartition = new Map<number, Registration | Set<Registration>>();
  readonly #touched = new Set<AppendWaiter>();

  constructor(replica: Replica) {
    replica.listen({
      onApplied: (entry) => this.#onApplied(entry),
      onGroupApplied: () => this.#onGroupApplied(),
      onPlansDropped: () => undefined,
    });
  }

  add(partition: number, registration: Registration): void {
    const waiting = this.#byPartition.get(partition);
    if (waiting === undefined) this.#byPartition.set(partition, registration);
    else if (waiting instanceof Set) waiting.add(registration);
    else this.#byPartition.set(partition, new Set([waiting, registration]));
  }

  remove(partition: number, registration: Registration): void {
    const waiting = this.#byPartition.get(partition);
    if (waiting instanceof Set) {
      waiting.delete(registration);
      if (waiting.size > 0) return;
    } else if (waiting !== registration) return;
    this.#byPartition.delete(partition);
  }

  #onApplied(entry: StoredEntry): void {
    if (this.#byPartition.size === 0) return;
    if (entry.type === EntryType.batches) {
      for (let i = 0; i < entry.partitions.length; i++) {
        this.#touch(entry.partitions[i]!, entry.batches[i]!.length);
      }
    } else if (entry.type === EntryType.logStartsMoved) {
      for (const { partition } of decodeLogStarts(entry.meta)) this.#touch(partition, 0);
    } else if (entry.type === EntryType.topicDeleted) {
      // Rare: everybody looks again, and who read the topic finds it gone.
      for (const partition of this.#byPartition.keys()) this.#touch(partition, 0);
    }
  }

  #touch(partition: number, bytes: number): void {
    const waiting = this.#byPartition.get(partition);
    if (waiting === undefined) return;
    if (waiting instanceof Set) for (const registration of waiting) this.#tell(registration, bytes);
    else this.#tell(waiting, bytes);
  }

  #tell(registration: Registration, bytes: number): void {
    registration.onNews();
    registration.waiter.onAppended(bytes);
    this.#touched.add(registration.waiter);
  }

  #onGroupApplied(): void {
    if (this.#touched.size === 0) return;
    const touched = [...this.#touched];
    this.#touched.clear();
    for (const waiter of touched) waiter.onGroupApplied();
  }
}

/** One partition of a waiter. */
export interface Registration {
  readonly waiter: AppendWaiter;
  /** Marks the partition as worth a look. */
  onNews(): void;
}
