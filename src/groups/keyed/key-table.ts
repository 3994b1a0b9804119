import { grown, none } from './record-store.ts';

/** Why a key without a holder is not ready. */
export const KeyPause = {
  none: 0,
  /** Its first record failed, and waits for its backoff. */
  retry: 1,
  /** Its first record is to be delivered with few others in its member's hand. */
  suspect: 2,
  /** Its first record is on its way to the dead letter topic. */
  deadLetter: 3,
  /** Stopped until an operator decides (`dead.letter.policy=halt`). */
  halted: 4,
} as const;
export type KeyPause = (typeof KeyPause)[keyof typeof KeyPause];

const initialKeys = 256;
/**
 * Cells of a key: what is asked of it lies together, in one line of the processor's cache. Records
 * of one key are far apart, and what was known of it has left the cache by the next one.
 */
const rowCells = 16;
/** The first of the cells that have the name itself, if it is short. */
const nameCell = 12;
const inlineBytesMax = 4 * (rowCells - nameCell);
/** Of names that are longer, or no bytes: they are looked up in the list. */
const notInline = -1;

/**
 * The keys with unfinished records, or kept by a member. A key is its exact bytes, here as a latin1
 * string. When it is idle and finished it is forgotten. A key's number is the place of its row;
 * the columns are views of all rows, each shifted by its own cell.
 */
export class KeyTable {
  #rows = new Int32Array(initialKeys * rowCells);
  /** The range that holds the key, `none` if it is free. */
  holder = this.#rows;
  /** Records of it that are granted and not finished. */
  inHand = this.#rows;
  /** Records of it that wait. */
  pending = this.#rows;
  /** The first of them. */
  nextPending = this.#rows;
  /** The batch of that one. */
  nextBatch = this.#rows;
  /** The last record filed under it. */
  tail = this.#rows;
  /** The member that had it last, by number. */
  lastMember = this.#rows;
  /** How many commits keep it with its holder though nothing of it is in hand. */
  kept = this.#rows;
  /** A KeyPause. */
  pause = this.#rows;
  /** Records of it that wait in the log, behind all that are loaded: see spill.ts. */
  spilled = this.#rows;
  #hash = this.#rows;
  #inlineBytes = this.#rows;
  /** Hash and key + 1 by turns; 0 where there is none. At most two thirds of it are in use. */
  #slots = new Int32Array(4 * initialKeys);
  readonly #names: (string | undefined)[] = [];
  #size = 0;
  #used = 0;
  readonly #free: number[] = [];
  readonly #seed: number;

  /** `seed` is not known to those who choose keys, who else could make many of one hash. */
  constructor(seed: number) {
    this.#seed = seed;
    this.#lookAt(this.#rows);
  }

  get size(): number {
    return this.#size;
  }

  /** Rows that are or were in use. */
  get rows(): number {
    return this.#used;
  }

  /** The keys of all rows. */
  *all(): Iterable<number> {
    for (let row = 0; row < this.#used; row++) yield row * rowCells;
  }

  name(key: number): string {
    return this.#names[key / rowCells]!;
  }

  find(name: string): number | undefined {
    const at = this.#slotOf(name, packed(name, this.#seed));
    return this.#slots[at + 1] === 0 ? undefined : this.#slots[at + 1]! - 1;
  }

  take(name: string): number {
    const hash = packed(name, this.#seed);
    const at = this.#slotOf(name, hash);
    if (this.#slots[at + 1] !== 0) return this.#slots[at + 1]! - 1;
    const key = this.#free.pop() ?? this.#used++ * rowCells;
    if (key === this.#rows.length) {
      this.#lookAt(grown(this.#rows, new Int32Array(this.#rows.length * 2)));
    }
    this.#slots[at] = hash;
    this.#slots[at + 1] = key + 1;
    this.#size++;
    this.#names[key / rowCells] = name;
    this.#rows.fill(0, key, key + rowCells);
    this.#hash[key] = hash;
    this.#inlineBytes[key] = inlineBytes;
    for (let i = 0; i < inlineCells.length; i++) this.#rows[key + nameCell + i] = inlineCells[i]!;
    this.holder[key] = none;
    this.nextPending[key] = none;
    this.tail[key] = none;
    this.lastMember[key] = none;
    if (3 * this.#size > this.#slots.length) this.#growSlots();
    return key;
  }

  forget(key: number): void {
    const mask = this.#slots.length - 2;
    let at = (this.#hash[key]! << 1) & mask;
    while (this.#slots[at + 1] !== key + 1) at = (at + 2) & mask;
    // What lies behind it may belong here: it moves up, so that no gap is between it and its place.
    for (let next = (at + 2) & mask; this.#slots[next + 1] !== 0; next = (next + 2) & mask) {
      const home = (this.#slots[next]! << 1) & mask;
      if (((next - home) & mask) < ((next - at) & mask)) continue;
      this.#slots[at] = this.#slots[next]!;
      this.#slots[at + 1] = this.#slots[next + 1]!;
      at = next;
    }
    this.#slots[at + 1] = 0;
    this.#size--;
    this.#names[key / rowCells] = undefined;
    this.#free.push(key);
  }

  isIdle(key: number): boolean {
    return (
      this.inHand[key] === 0 &&
      this.pending[key] === 0 &&
      this.kept[key] === 0 &&
      this.spilled[key] === 0
    );
  }

  /** Where the key is in the slots, or would be. `packed` was called for it. */
  #slotOf(name: string, hash: number): number {
    const mask = this.#slots.length - 2;
    let at = (hash << 1) & mask;
    for (; this.#slots[at + 1] !== 0; at = (at + 2) & mask) {
      if (this.#slots[at] === hash && this.#isNamed(this.#slots[at + 1]! - 1, name)) break;
    }
    return at;
  }

  #isNamed(key: number, name: string): boolean {
    if (this.#inlineBytes[key] !== inlineBytes) return false;
    if (inlineBytes === notInline) return this.#names[key / rowCells] === name;
    for (let i = 0; i < inlineCells.length; i++) {
      if (this.#rows[key + nameCell + i] !== inlineCells[i]) return false;
    }
    return true;
  }

  #growSlots(): void {
    const before = this.#slots;
    this.#slots = new Int32Array(before.length * 2);
    const mask = this.#slots.length - 2;
    for (let from = 0; from < before.length; from += 2) {
      if (before[from + 1] === 0) continue;
      let at = (before[from]! << 1) & mask;
      while (this.#slots[at + 1] !== 0) at = (at + 2) & mask;
      this.#slots[at] = before[from]!;
      this.#slots[at + 1] = before[from + 1]!;
    }
  }

  #lookAt(rows: Int32Array<ArrayBuffer>): void {
    this.#rows = rows;
    this.holder = rows;
    this.inHand = rows.subarray(1);
    this.pending = rows.subarray(2);
    this.nextPending = rows.subarray(3);
    this.tail = rows.subarray(4);
    this.lastMember = rows.subarray(5);
    this.kept = rows.subarray(6);
    this.pause = rows.subarray(7);
    this.spilled = rows.subarray(8);
    this.#hash = rows.subarray(9);
    this.#inlineBytes = rows.subarray(10);
    this.nextBatch = rows.subarray(11);
  }
}

/** What `packed` found: the name's bytes, and how many they are. */
const inlineCells = new Int32Array(rowCells - nameCell);
let inlineBytes = 0;

/** Packs a short name into `inlineCells`. Answers its hash. */
function packed(name: string, seed: number): number {
  const { length } = name;
  let hash = seed ^ length;
  let isBytes = true;
  inlineCells.fill(0);
  for (let i = 0; i < length; i++) {
    const code = name.charCodeAt(i);
    hash = Math.imul(hash ^ code, 0x01000193);
    if (code > 255) isBytes = false;
    if (i < inlineBytesMax) inlineCells[i >> 2]! |= code << ((i & 3) << 3);
  }
  inlineBytes = isBytes && length <= inlineBytesMax ? length : notInline;
  // The lowest bits are to depend on all of it.
  return hash ^ (hash >>> 15);
}
