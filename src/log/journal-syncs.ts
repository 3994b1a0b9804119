import type { FilePort, JournalFile } from './file-port.ts';

interface Sync {
  readonly file: JournalFile;
  /** Journal position up to which everything was written when it began. */
  readonly end: number;
  readonly done: Promise<void>;
}

export interface JournalSyncsOptions {
  readonly files: FilePort;
  /** Journal position up to which everything is written. */
  readonly written: () => number;
  /** A sync failed, which is fatal: answers what to throw. */
  readonly failed: (error: unknown) => Error;
}

/**
 * The syncs of the file that the journal writes to: at most two are under way, the second one
 * through a descriptor of its own.
 *
 * Linux tells an error of the device once to each descriptor (errseq_t, since 4.13). With one, the
 * first of two syncs to end would take an error that concerns both. With two, each hears of every
 * failure since its last sync; and a sync waits for all pages that were written before it began,
 * also for those that the other one has sent to the disk. So whichever ends first speaks for all
 * that came before it.
 */
export class JournalSyncs {
  readonly #options: JournalSyncsOptions;
  #path = '';
  #first: JournalFile | undefined;
  #second: JournalFile | undefined;
  #opening: Promise<void> | undefined;
  #isOpening = false;
  #underWay: Sync[] = [];
  #synced = 0;
  /**
   * Fatal, and nothing is tried again: the system may have dropped the pages that it could not
   * write, and a later sync would succeed without them.
   */
  #failure: Error | undefined;

  constructor(options: JournalSyncsOptions) {
    this.#options = options;
  }

  /** Everything before it is known to be on disk. */
  get synced(): number {
    return this.#synced;
  }

  /** From now on this file is written to; all before `synced` is on disk. */
  use(path: string, file: JournalFile, synced: number): void {
    this.#path = path;
    this.#first = file;
    this.#synced = synced;
  }

  /** Waits for what is under way and closes the second descriptor. */
  async release(): Promise<void> {
    await Promise.all(this.#underWay.map(({ done }) => done));
    await this.#opening;
    this.#opening = undefined;
    const second = this.#second;
    this.#second = undefined;
    await second?.close();
  }

  /** Makes everything durable that is written by now. */
  async flush(): Promise<void> {
    const end = this.#options.written();
    while (this.#synced < end) {
      if (this.#failure !== undefined) throw this.#failure;
      const covering = this.#underWay.find((sync) => sync.end >= end) ?? this.#begin();
      if (covering !== undefined) await covering.done;
      else {
        const [oldest] = this.#underWay;
        await (this.#isOpening ? Promise.race([oldest!.done, this.#opening]) : oldest!.done);
      }
    }
  }

  /** Undefined when as many are under way as can be. */
  #begin(): Sync | undefined {
    const file = this.#isBusy(this.#first) ? this.#freeSecond() : this.#first;
    if (file === undefined) return undefined;
    const end = this.#options.written();
    const sync: Sync = { file, end, done: this.#run(file, end) };
    this.#underWay.push(sync);
    const isOver = (): void => {
      this.#underWay = this.#underWay.filter((other) => other !== sync);
    };
    sync.done.then(isOver, isOver);
    return sync;
  }

  async #run(file: JournalFile, end: number): Promise<void> {
    try {
      await file.sync();
    } catch (error) {
      this.#failure ??= this.#options.failed(error);
    }
    if (this.#failure !== undefined) throw this.#failure;
    this.#synced = Math.max(this.#synced, end);
  }

  #isBusy(file: JournalFile | undefined): boolean {
    return this.#underWay.some((sync) => sync.file === file);
  }

  /** It is opened when it is wanted for the first time: a quick disk never needs it. */
  #freeSecond(): JournalFile | undefined {
    if (this.#second !== undefined) return this.#isBusy(this.#second) ? undefined : this.#second;
    this.#opening ??= this.#openSecond();
    return undefined;
  }

  async #openSecond(): Promise<void> {
    this.#isOpening = true;
    try {
      this.#second = await this.#options.files.open(this.#path, 'write');
    } catch {
      // Such as no descriptors left: one sync after the other is slower, and as good.
    } finally {
      this.#isOpening = false;
    }
  }
}
