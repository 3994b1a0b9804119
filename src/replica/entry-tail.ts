import { type Entry, entryBytes } from '../log/format.ts';

const entriesMax = 65_536;

/**
 * The newest entries of the log, by index, for the other members of the group. Their bytes are
 * those that the journal keeps in memory for consumers anyway.
 */
export class EntryTail {
  readonly #bytesMax: number;
  #entries: Entry[] = [];
  /** The first ones of the list are gone. */
  #head = 0;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get #first(): number {
    return this.#entries[this.#head]?.index ?? 0;
  }

  /** Behind the last one, or anywhere, which makes all that is there void. */
  push(entry: Entry): void {
    const last = this.#entries.at(-1);
    if (last !== undefined && last.index + 1 !== entry.index) this.#clear();
    this.#entries.push(entry);
    this.#bytes += entryBytes(entry);
    while (this.#bytes > this.#bytesMax || this.#entries.length - this.#head > entriesMax) {
      this.#bytes -= entryBytes(this.#entries[this.#head++]!);
    }
    if (this.#head < 1024 || this.#head * 2 < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#head);
    this.#head = 0;
  }

  truncateAfter(index: number): void {
    while (this.#entries.length > this.#head && this.#entries.at(-1)!.index > index) {
      this.#bytes -= entryBytes(this.#entries.pop()!);
    }
    if (this.#entries.length === this.#head) this.#clear();
  }

  /** Undefined if not all of `[first, last]` is there. */
  range(first: number, last: number): readonly Entry[] | undefined {
    if (this.#entries.length === this.#head) return undefined;
    const from = this.#head + first - this.#first;
    const to = this.#head + last - this.#first;
    if (from < this.#head || to >= this.#entries.length) return undefined;
    return this.#entries.slice(from, to + 1);
  }

  /**
   * The last of `[first, last]` up to which they fit into `bytesMax`, at least the first; undefined
   * if that is not there.
   */
  lastFitting(first: number, last: number, bytesMax: number): number | undefined {
    const at = this.#head + first - this.#first;
    if (this.#entries.length === this.#head || at < this.#head) return undefined;
    return lastFitting(this.#entries, at, last, bytesMax);
  }

  #clear(): void {
    this.#entries = [];
    this.#head = 0;
    this.#bytes = 0;
  }
}

/**
 * The last entry, up to that with the index `last`, that fits into `bytesMax` with those from `at`
 * on; at least the one at `at`. Undefined if that is not there.
 */
export function lastFitting(
  entries: readonly Entry[],
  at: number,
  last: number,
  bytesMax: number,
): number | undefined {
  const first = entries[at]?.index;
  if (first === undefined) return undefined;
  let bytes = 0;
  for (let index = first; index <= last; index++) {
    const entry = entries[at + index - first];
    if (entry !== undefined) bytes += entryBytes(entry);
    if (entry === undefined || bytes > bytesMax) return Math.max(index - 1, first);
  }
  return last;
}
