import { EntryReader } from '../log/entry-reader.ts';
import type { Entry } from '../log/format.ts';
import type { Journal } from '../log/journal.ts';
import type { Append } from '../raft/messages.ts';
import { type EntryTail, lastFitting } from './entry-tail.ts';
import type { PeerPort } from './peer-port.ts';

/** Read from the journal at a time, for a peer that lags behind what is in memory. */
const readBytesMax = 2 * 1024 * 1024;
/** The core has few under way to one peer; beyond that something is wrong, and they are lost. */
const queuedMax = 1024;

/**
 * Adds to the appends for one peer what is in their entries: from memory at once, from the journal
 * if they are older. Appends leave in their order.
 */
export class AppendSender {
  readonly #peers: PeerPort;
  readonly #tail: EntryTail;
  readonly #reader: EntryReader;
  readonly #onMissing: (index: number) => void;
  readonly #onFatal: (error: unknown) => void;
  #queue: Append[] = [];
  #isReading = false;
  /** Read last, one after the other: what a peer lacks that lags behind is sent from here. */
  #read: readonly Entry[] = [];

  constructor(
    peers: PeerPort,
    tail: EntryTail,
    journal: Journal,
    onMissing: (index: number) => void,
    onFatal: (error: unknown) => void,
  ) {
    this.#peers = peers;
    this.#tail = tail;
    this.#reader = new EntryReader(journal);
    this.#onMissing = onMissing;
    this.#onFatal = onFatal;
  }

  send(message: Append): void {
    if (this.#isReading) {
      if (this.#queue.length < queuedMax) this.#queue.push(message);
      return;
    }
    if (this.#sendFromMemory(message)) return;
    this.#queue.push(message);
    this.#isReading = true;
    this.#readOn().catch((error: unknown) => this.#onFatal(error));
  }

  #sendFromMemory(message: Append): boolean {
    const { prevIndex, lastIndex } = message;
    const entries = lastIndex === prevIndex ? [] : this.#tail.range(prevIndex + 1, lastIndex);
    if (entries === undefined) return false;
    // It has caught up, or begins anew.
    this.#read = [];
    this.#peers.send(message, entries);
    return true;
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const message = this.#queue.shift();
      if (message === undefined) break;
      if (!this.#sendFromMemory(message)) await this.#sendFromJournal(message);
    }
    this.#isReading = false;
  }

  #placeOf(index: number): number {
    return index - (this.#read[0]?.index ?? 0);
  }

  /** As `EntryTail.lastFitting`, of what was read from the journal. */
  lastFitting(first: number, last: number, bytesMax: number): number | undefined {
    return lastFitting(this.#read, this.#placeOf(first), last, bytesMax);
  }

  /** What the journal does not have (any more) is not sent. */
  async #sendFromJournal(message: Append): Promise<void> {
    const { prevIndex, lastIndex } = message;
    const entries: Entry[] = [];
    for (let index = prevIndex + 1; index <= lastIndex; ) {
      let at = this.#placeOf(index);
      if (this.#read[at] === undefined) {
        this.#read = (await this.#reader.read(index, readBytesMax)) ?? [];
        at = 0;
        if (this.#read.length === 0) {
          this.#onMissing(index);
          return;
        }
      }
      const taken = this.#read.slice(at, at + lastIndex - index + 1);
      entries.push(...taken);
      index += taken.length;
    }
    if (entries.at(-1)!.term === termOfLast(message)) this.#peers.send(message, entries);
    // The log was rewound meanwhile, and has others in their places.
    else this.#read = [];
  }
}

function termOfLast({ runs }: Append): number {
  return runs.at(-1)!.term;
}
