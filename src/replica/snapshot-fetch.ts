import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { Random } from '../core/random.ts';
import { type FilePort, isCode } from '../log/file-port.ts';
import type { LogFile } from '../log/journal-file.ts';
import { readSnapshotFile, type Snapshot, writeSnapshot } from '../log/snapshot-file.ts';
import { StagedJournal } from '../log/staged-journal.ts';
import type { HardState, OfferedSnapshot } from '../raft/ready.ts';
import type { TermRun } from '../raft/term-log.ts';
import { encodeLogFacts } from '../state/commands.ts';
import { installFolder, putInPlace } from './install-folder.ts';
import {
  decodeSnapshotAnswer,
  encodeSnapshotRequest,
  type SnapshotAnswer,
  SnapshotPart,
  type SnapshotRequest,
} from './snapshot-messages.ts';

export interface SnapshotFetchOptions {
  readonly files: FilePort;
  /** Of the tenant; what is fetched is put together beside it. */
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly fileBytesMax: number;
  readonly fileExtentsMax: number;
  /** No more than this, on average. */
  readonly bytesPerSecondMax: number;
  readonly ask: (member: string, request: Buffer) => Promise<Buffer | undefined>;
  /** Files of the own journal in which all is applied; they stay there while `begin` works. */
  readonly keptFiles: () => readonly LogFile[];
  /** While no file of the journal is removed. */
  readonly undisturbed: <T>(work: () => Promise<T>) => Promise<T>;
  /** Is there room for so many bytes more? */
  readonly mayGrow: (bytes: number) => boolean;
  /** All is there: once the replica is stopped it is put in place, and the replica opened anew. */
  readonly onFetched: () => void;
  readonly onFatal: (error: unknown) => void;
}

/** Who has heard of no offer for so long needs no snapshot any more. */
const offeredMs = 10_000;
/** An answer that takes longer is lost. */
const answerMsMax = 10_000;
const againMs = 250;

/**
 * Fetches a snapshot from another member: what is alive of the entries that it covers, behind those
 * that are here, then the snapshot itself. All of it comes to lie beside what is in use, which
 * goes on to vote; it is put in place, at once, when the replica stops.
 */
export class SnapshotFetch {
  readonly #options: SnapshotFetchOptions;
  #offered: OfferedSnapshot | undefined;
  #offeredMs = 0;
  #running: Promise<void> | undefined;
  /** Where the journal is to be read from, once all is there. */
  #position: number | undefined;
  #isStopped = false;
  #interrupt: (() => void) | undefined;

  constructor(options: SnapshotFetchOptions) {
    this.#options = options;
  }

  /** The leader has a snapshot without which this member cannot go on. */
  offer(offered: OfferedSnapshot): void {
    const { clock, onFatal } = this.#options;
    this.#offered = offered;
    this.#offeredMs = clock.monotonicMs();
    if (this.#running !== undefined || this.#position !== undefined || this.#isStopped) return;
    this.#running = this.#fetch().then(() => {
      this.#running = undefined;
    }, onFatal);
  }

  /** Ends what is under way; it can be gone on with after the next start. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#interrupt?.();
    await this.#running;
  }

  /**
   * After the end of the replica: what was fetched takes its place, with this term and vote. Unless
   * what it lacked has come by other ways meanwhile, and has been answered for.
   */
  async putInPlace(hardState: HardState, isLacking: (base: TermRun) => boolean): Promise<void> {
    const { log } = this.#options;
    if (this.#position === undefined) return;
    try {
      await this.#putInPlace(this.#position, hardState, isLacking);
    } catch (error) {
      if (!isCode(error, 'ENOSPC')) throw error;
      // The next start goes on from here.
      log.warn({ reason: String(error) }, 'no space to put a snapshot in place');
    }
  }

  async #putInPlace(
    position: number,
    hardState: HardState,
    isLacking: (base: TermRun) => boolean,
  ): Promise<void> {
    const { files, folder } = this.#options;
    const staged = installFolder(folder);
    const { index, term, image } = (await this.#readImage())!;
    // Of what is before it nothing is known here that others could be given.
    const base = { index, term };
    if (!isLacking(base)) {
      await files.removeFolder(staged);
      return;
    }
    const facts = encodeLogFacts({ ...hardState, base, runs: [] });
    await files.makeFolder(`${staged}/snapshots`);
    await writeSnapshot(files, `${staged}/snapshots`, {
      ...{ position, index, term, hardState: facts, image },
    });
    await files.remove(this.#imagePath);
    await putInPlace(files, folder);
  }

  /** What was fetched in vain is not needed any more: this member has gone on without it. */
  async discard(): Promise<void> {
    const { files, folder } = this.#options;
    if (this.#running === undefined && this.#position === undefined) {
      await files.removeFolder(installFolder(folder));
    }
  }

  async #fetch(): Promise<void> {
    const { log, onFetched } = this.#options;
    log.info(
      { from: this.#offered!.from, index: this.#offered!.base.index },
      'fetching a snapshot',
    );
    while (this.#isWanted) {
      try {
        await this.#fetchAll();
        log.info({}, 'a snapshot is fetched');
        onFetched();
        return;
      } catch (error) {
        if (!isCode(error, 'ENOSPC') && !(error instanceof FetchBroken)) throw error;
        log.debug({ reason: String(error) }, 'fetching a snapshot is interrupted');
        await this.#await(againMs);
      }
    }
  }

  get #isWanted(): boolean {
    if (this.#isStopped) return false;
    return this.#options.clock.monotonicMs() - this.#offeredMs < offeredMs;
  }

  async #fetchAll(): Promise<void> {
    const { files, folder, keptFiles, undisturbed } = this.#options;
    const journalFolder = `${folder}/journal`;
    const stagedFolder = `${installFolder(folder)}/journal`;
    const journal = await undisturbed(() =>
      StagedJournal.open({ ...this.#options, folder: stagedFolder }, keptFiles, journalFolder),
    );
    try {
      for (;;) {
        const base = await this.#fetchEntries(journal);
        if (!(await this.#fetchImage(base))) continue;
        this.#checkRoom(0);
        const position = await journal.finish(base.index, base.term);
        await files.syncFolder(stagedFolder);
        this.#position = position;
        return;
      }
    } finally {
      await journal.close();
    }
  }

  /** All entries up to a snapshot; answers the last one that it covers. */
  async #fetchEntries(journal: StagedJournal): Promise<TermRun> {
    for (;;) {
      const { lastIndex: index } = journal;
      const answer = await this.#ask({ part: SnapshotPart.entries, index, at: 0 });
      if (answer.part !== SnapshotPart.entries) throw new FetchBroken('it has no such entries');
      if (answer.entries.some((entry) => entry.index <= index)) {
        throw new FetchBroken('entries came twice');
      }
      await journal.append(answer.entries);
      if (answer.isLast) return answer.base;
    }
  }

  /** The image; false if the other member has another snapshot by now. */
  async #fetchImage({ index }: TermRun): Promise<boolean> {
    const { files } = this.#options;
    const file = await files.open(this.#imagePath, 'create');
    try {
      for (let at = 0; ; ) {
        const answer = await this.#ask({ part: SnapshotPart.image, index, at });
        if (answer.part !== SnapshotPart.image || answer.base.index !== index) return false;
        if (answer.bytes.length === 0) break;
        await file.write([answer.bytes], at);
        at += answer.bytes.length;
        if (at >= answer.bytesOfAll) break;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    const snapshot = await this.#readImage();
    if (snapshot?.index !== index) throw new FetchBroken('the snapshot arrived damaged');
    this.#checkRoom(snapshot.image.length);
    return true;
  }

  get #imagePath(): string {
    return `${installFolder(this.#options.folder)}/image.tmp`;
  }

  #readImage(): Promise<Snapshot | undefined> {
    return readSnapshotFile(this.#options.files, this.#imagePath);
  }

  /** The next answer of whoever has offered last, as fast as is allowed. */
  async #ask(request: SnapshotRequest): Promise<SnapshotAnswer> {
    const { clock, ask, bytesPerSecondMax } = this.#options;
    this.#checkRoom(0);
    const sentMs = clock.monotonicMs();
    const answer = ask(this.#offered!.from, encodeSnapshotRequest(request));
    const bytes = await this.#await(answerMsMax, answer);
    if (bytes === undefined || this.#isStopped) throw new FetchBroken('no answer');
    const restMs = sentMs + (bytes.length / bytesPerSecondMax) * 1000 - clock.monotonicMs();
    if (restMs > 0) await this.#await(restMs);
    try {
      return decodeSnapshotAnswer(bytes);
    } catch (error) {
      throw new FetchBroken((error as Error).message);
    }
  }

  #checkRoom(bytes: number): void {
    const { mayGrow, fileBytesMax } = this.#options;
    if (!mayGrow(fileBytesMax + bytes)) throw new FetchBroken('the disk has too little space');
  }

  /** What comes, or undefined after this time, or when this is stopped. */
  #await<T>(ms: number, promise?: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      const end = (value?: T): void => {
        cancel();
        this.#interrupt = undefined;
        resolve(value);
      };
      const cancel = this.#options.clock.after(ms, () => end());
      this.#interrupt = () => end();
      promise?.then(end);
    });
  }
}

/** It does not go on at the moment. */
class FetchBroken extends Error {}
