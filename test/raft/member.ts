/** A driver of one core, with a disk that the test has in its hand. */
import type { Configuration, ConfigurationEntry } from '../../src/raft/membership.ts';
import type { Message } from '../../src/raft/messages.ts';
import { Raft } from '../../src/raft/raft.ts';
import type { DozeOptions, HardState, Ready } from '../../src/raft/ready.ts';
import type { TermRun } from '../../src/raft/term-log.ts';

export interface Entry {
  readonly term: number;
  /** What a client wrote, or a configuration; null: a new leader's entry without effect. */
  readonly data: number | Configuration | null;
}

export interface Snapshot extends TermRun {
  readonly configuration: ConfigurationEntry;
}

/** What is written together, and survives together. */
interface Write {
  readonly hardState: HardState | undefined;
  readonly truncateAfter: number | undefined;
  readonly first: number;
  readonly entries: readonly Entry[];
}

/** A message with what its driver adds. */
export interface Sent {
  readonly message: Message;
  readonly entries: readonly Entry[];
}

class Disk {
  hardState: HardState = { term: 0, votedFor: null };
  snapshot: Snapshot;
  /** By index; those up to the snapshot's are not looked at. */
  entries: Entry[] = [];

  constructor(configuration: Configuration) {
    this.snapshot = { index: 0, term: 0, configuration: { index: 0, configuration } };
  }

  write({ hardState, truncateAfter, first, entries }: Write): void {
    if (hardState !== undefined) this.hardState = hardState;
    if (truncateAfter !== undefined) this.entries.length = truncateAfter + 1;
    for (const [i, entry] of entries.entries()) this.entries[first + i] = entry;
  }
}

export const electionTimeoutMs = 300;
export const heartbeatMs = 50;
export const doze: DozeOptions = { afterMs: 60, heartbeatMs: 400, timeoutMs: 1200 };
/** Entries that fit into one message. */
const entriesPerMessage = 3;

export class Member {
  readonly id: string;
  readonly disk: Disk;
  readonly #random: () => number;
  readonly #doze: DozeOptions | undefined;
  #raft: Raft | undefined;
  /** In memory, by index; what is on disk may lag behind. */
  entries: Entry[] = [];
  /** On their way to the disk, in order. */
  writes: Write[] = [];
  truncations = 0;

  constructor(
    id: string,
    configuration: Configuration,
    random: () => number,
    doze: DozeOptions | undefined,
  ) {
    this.#doze = doze;
    this.id = id;
    this.disk = new Disk(configuration);
    this.#random = random;
  }

  get isUp(): boolean {
    return this.#raft !== undefined;
  }
  get raft(): Raft {
    return this.#raft!;
  }

  start(nowMs: number): void {
    const { hardState, snapshot, entries } = this.disk;
    this.entries = [...entries];
    this.writes = [];
    const lastIndex = Math.max(entries.length - 1, snapshot.index);
    const runs: TermRun[] = [];
    const configurations: ConfigurationEntry[] = [];
    for (let index = snapshot.index + 1; index <= lastIndex; index++) {
      const { term, data } = entries[index]!;
      if (runs.at(-1)?.term !== term) runs.push({ index, term });
      if (isConfiguration(data)) configurations.push({ index, configuration: data });
    }
    const { index, term, configuration } = snapshot;
    this.#raft = new Raft(
      {
        ...{ self: this.id, configuration, configurations, hardState },
        ...{ base: { index, term }, runs, lastIndex, commitIndex: index },
        ...{
          electionTimeoutMs,
          heartbeatMs,
          missedMs: 1000,
          appendsUnderWayMax: 4,
          doze: this.#doze,
          random: this.#random,
        },
        lastFitting: (_to, first, last) => Math.min(last, first + entriesPerMessage - 1),
        snapshot: () => this.disk.snapshot,
      },
      nowMs,
    );
  }

  /** Of what is on its way to the disk the first `writes` arrive. */
  crash(writes: number): void {
    for (const write of this.writes.slice(0, writes)) this.disk.write(write);
    this.#raft = undefined;
  }

  persistOne(nowMs: number): boolean {
    const write = this.writes.shift();
    if (write === undefined) return false;
    this.disk.write(write);
    const { hardState, first, entries } = write;
    if (entries.length > 0) {
      this.raft.entriesPersisted(first + entries.length - 1, entries.at(-1)!.term);
    }
    if (hardState !== undefined) this.raft.hardStatePersisted(hardState, nowMs);
    return true;
  }

  propose(data: number, nowMs: number): void {
    const { term, index } = this.raft.propose();
    this.#write(index, [{ term, data }]);
    this.raft.sendAppends(nowMs);
  }

  reconfigure(configuration: Configuration, nowMs: number): void {
    const { term, index } = this.raft.proposeConfiguration(configuration);
    this.#write(index, [{ term, data: configuration }]);
    this.raft.sendAppends(nowMs);
  }

  receive({ message, entries }: Sent, nowMs: number): void {
    const accepted = this.raft.step(message, nowMs);
    if (accepted === undefined || message.kind !== 'append') return;
    const { first, truncateAfter } = accepted;
    this.#write(first, entries.slice(first - message.prevIndex - 1), truncateAfter);
  }

  /** What is to go out; the rest of the ready value is done. */
  take(): Ready & { readonly sent: readonly Sent[] } {
    const ready = this.raft.takeReady();
    const { hardState, noop, messages } = ready;
    if (hardState !== undefined) {
      this.writes.push({ hardState, truncateAfter: undefined, first: 0, entries: [] });
    }
    if (noop !== undefined) this.#write(noop.index, [{ term: noop.term, data: null }]);
    const sent = messages.map((message) => ({ message, entries: this.#entriesOf(message) }));
    return { ...ready, sent };
  }

  #entriesOf(message: Message): readonly Entry[] {
    if (message.kind !== 'append') return [];
    return this.entries.slice(message.prevIndex + 1, message.lastIndex + 1);
  }

  /** A snapshot up to `index`, which is applied. */
  compact(index: number): void {
    const { snapshot } = this.disk;
    let { configuration } = snapshot;
    for (let i = snapshot.index + 1; i <= index; i++) {
      const { data } = this.entries[i]!;
      if (isConfiguration(data)) configuration = { index: i, configuration: data };
    }
    this.disk.snapshot = { index, term: this.raft.termAt(index)!, configuration };
    this.raft.compactTo(index);
  }

  /** It takes the place of the whole log, and the member starts anew; not its term and vote. */
  install({ index, term, configuration }: Snapshot, nowMs: number): void {
    this.disk.hardState = this.raft.hardState;
    this.disk.snapshot = { index, term, configuration };
    this.disk.entries = [];
    this.disk.entries.length = index + 1;
    this.start(nowMs);
  }

  #write(first: number, entries: readonly Entry[], truncateAfter?: number): void {
    if (truncateAfter !== undefined) {
      this.entries.length = truncateAfter + 1;
      this.truncations++;
    }
    for (const [i, entry] of entries.entries()) this.entries[first + i] = entry;
    this.writes.push({ hardState: undefined, truncateAfter, first, entries });
  }
}

function isConfiguration(data: Entry['data']): data is Configuration {
  return typeof data === 'object' && data !== null;
}
