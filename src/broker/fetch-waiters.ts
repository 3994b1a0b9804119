import type { StoredEntry } from '../log/format.ts';
import type { Replica } from '../replica/replica.ts';
import { decodeLogStarts } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import { pageOf, partitionsPerPage } from '../state/partitions.ts';

/** Something that wants to know when there is more to read in a partition. */
export interface AppendWaiter {
  /**
   * Called as entries are applied, with the row that was registered; cheap, and answers nothing
   * yet. `bytes` is 0 for other news.
   */
  onAppended(row: number, bytes: number): void;
  /** Called once after the group of entries in which `onAppended` was called. */
  onGroupApplied(): void;
}

/** The first registration of each partition of a page, + 1; 0 where there is none. */
interface Page {
  readonly heads: Int32Array;
  count: number;
}

const registrationsInitial = 256;

/**
 * Who waits for which partition: parked fetches and fetch sessions. The registrations of a
 * partition form a list, in columns of 20 bytes each.
 */
export class FetchWaiters {
  readonly #replica: Replica;
  readonly #pages = new Map<number, Page>();
  #waiters: (AppendWaiter | undefined)[] = [];
  #row = new Int32Array(registrationsInitial);
  /** Neighbours in the list, + 1; of a free registration, the next free one. */
  #next = new Int32Array(registrationsInitial);
  #previous = new Int32Array(registrationsInitial);
  #end = 0;
  #firstFree = 0;
  #count = 0;
  readonly #touched = new Set<AppendWaiter>();

  constructor(replica: Replica) {
    this.#replica = replica;
    replica.listen({
      onApplied: (entry) => this.#onApplied(entry),
      onGroupApplied: () => this.#onGroupApplied(),
    });
  }

  /** Registrations that there are. */
  get count(): number {
    return this.#count;
  }

  /** Answers the number of the registration, to take it back. */
  add(partition: number, waiter: AppendWaiter, row: number): number {
    const page = this.#makePage(pageOf(partition));
    const at = partition % partitionsPerPage;
    const registration = this.#allocate();
    this.#waiters[registration] = waiter;
    this.#row[registration] = row;
    const second = page.heads[at]!;
    this.#next[registration] = second;
    this.#previous[registration] = 0;
    if (second > 0) this.#previous[second - 1] = registration + 1;
    page.heads[at] = registration + 1;
    page.count++;
    return registration;
  }

  remove(partition: number, registration: number): void {
    const page = this.#pages.get(pageOf(partition))!;
    const next = this.#next[registration]!;
    const previous = this.#previous[registration]!;
    if (next > 0) this.#previous[next - 1] = previous;
    if (previous > 0) this.#next[previous - 1] = next;
    else page.heads[partition % partitionsPerPage] = next;
    if (--page.count === 0) this.#pages.delete(pageOf(partition));
    this.#free(registration);
  }

  #onApplied(entry: StoredEntry): void {
    if (this.#count === 0) return;
    if (entry.batches.length > 0) {
      for (let i = 0; i < entry.partitions.length; i++) {
        this.#touch(entry.partitions[i]!, entry.batches[i]!.length);
      }
    } else if (entry.type === EntryType.logStartsMoved) {
      for (const { partition } of decodeLogStarts(entry.meta)) this.#touch(partition, 0);
    } else if (entry.type === EntryType.topicDeleted) this.#touchDeleted();
  }

  /** Who read a topic that is gone now looks again and finds it so. */
  #touchDeleted(): void {
    const { partitions } = this.#replica.state.topics;
    for (const [number, { heads }] of this.#pages) {
      for (let at = 0; at < partitionsPerPage; at++) {
        if (heads[at] === 0) continue;
        const partition = number * partitionsPerPage + at;
        if (!partitions.exists(partition)) this.#touch(partition, 0);
      }
    }
  }

  #touch(partition: number, bytes: number): void {
    const page = this.#pages.get(pageOf(partition));
    if (page === undefined) return;
    for (let at = page.heads[partition % partitionsPerPage]!; at > 0; at = this.#next[at - 1]!) {
      const waiter = this.#waiters[at - 1]!;
      waiter.onAppended(this.#row[at - 1]!, bytes);
      this.#touched.add(waiter);
    }
  }

  #onGroupApplied(): void {
    if (this.#touched.size === 0) return;
    const touched = [...this.#touched];
    this.#touched.clear();
    for (const waiter of touched) waiter.onGroupApplied();
  }

  #makePage(number: number): Page {
    const page = this.#pages.get(number);
    if (page !== undefined) return page;
    const made = { heads: new Int32Array(partitionsPerPage), count: 0 };
    this.#pages.set(number, made);
    return made;
  }

  #allocate(): number {
    this.#count++;
    if (this.#firstFree > 0) {
      const free = this.#firstFree - 1;
      this.#firstFree = this.#next[free]!;
      return free;
    }
    if (this.#end === this.#row.length) {
      this.#row = grown(this.#row);
      this.#next = grown(this.#next);
      this.#previous = grown(this.#previous);
    }
    return this.#end++;
  }

  #free(registration: number): void {
    this.#waiters[registration] = undefined;
    this.#next[registration] = this.#firstFree;
    this.#firstFree = registration + 1;
    if (--this.#count > 0) return;
    this.#waiters = [];
    this.#end = 0;
    this.#firstFree = 0;
  }
}

function grown(from: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const to = new Int32Array(from.length * 2);
  to.set(from);
  return to;
}
