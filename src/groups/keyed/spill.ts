import type { KeyTable } from './key-table.ts';

/** A key whose holder has so few records of it left gets more from the log. */
const reloadBelow = 64;
/** So many of a key are loaded at a time. */
const loadedMax = 4096;
/** A key that is held keeps so many loaded, however scarce memory is. */
const keptLoaded = 2;

/** Where the first record of a key lies that is not loaded. */
interface SpillStart {
  readonly position: number;
  readonly index: number;
}

/**
 * Records of held keys that were left in the log because memory was short. A key whose records are
 * left there has a count of them and the place of the first one, however many they are; all later
 * records of it stay in the log too. When it is released, or its holder comes to the end of what is
 * loaded, the log is read once more from where the group is done, for such keys alone.
 */
export class Spill {
  readonly #keys: KeyTable;
  readonly #starts = new Map<number, SpillStart>();
  /** Keys that wait for a reading of the log, and those that the present one is for. */
  readonly #wanted = new Set<number>();
  #reading = new Set<number>();
  /** Whether memory is short. */
  isShort = false;

  constructor(keys: KeyTable) {
    this.#keys = keys;
  }

  /** How many keys have records that are not loaded. */
  get size(): number {
    return this.#starts.size;
  }

  /** Whether some key waits for its records to be read again. */
  get isReadingDue(): boolean {
    return this.#wanted.size > 0 || this.#reading.size > 0;
  }

  /** Leaves a record of a key in the log, if its records are left there. */
  leaves(key: number, isHeld: boolean, position: number, index: number): boolean {
    const { spilled, pending } = this.#keys;
    if (spilled[key] === 0) {
      if (!this.isShort || !isHeld || pending[key]! < keptLoaded) return false;
      this.#starts.set(key, { position, index });
    }
    spilled[key]!++;
    return true;
  }

  /** Few records of the key are loaded: asks for more, if there are more. */
  want(key: number): void {
    const { spilled, pending } = this.#keys;
    if (spilled[key]! === 0 || pending[key]! >= reloadBelow) return;
    if (!this.#reading.has(key)) this.#wanted.add(key);
  }

  /** A reading from the beginning starts, for all keys that wait now. */
  beginReading(): void {
    this.#reading = new Set(this.#wanted);
    this.#wanted.clear();
  }

  /** Whether the reading may go on: some of its keys have few records loaded. */
  get isReadingWanted(): boolean {
    for (const key of this.#reading) if (this.#keys.pending[key]! < loadedMax) return true;
    return false;
  }

  /** Whether a record that is read again was left in the log, and belongs to a key that is read. */
  takes(key: number, position: number, index: number): boolean {
    const start = this.#starts.get(key);
    if (start === undefined || !this.#reading.has(key)) return false;
    return position > start.position || (position === start.position && index >= start.index);
  }

  /** One of a key's records is loaded. */
  took(key: number): void {
    const { spilled } = this.#keys;
    spilled[key]!--;
    if (spilled[key] === 0) this.forget(key);
  }

  /** The reading came to where the log is filed as it comes: what is missing was deleted. */
  endReading(done: (key: number) => void): void {
    for (const key of this.#reading) {
      this.#keys.spilled[key] = 0;
      this.forget(key);
      done(key);
    }
    this.#reading.clear();
  }

  forget(key: number): void {
    this.#starts.delete(key);
    this.#wanted.delete(key);
  }
}
