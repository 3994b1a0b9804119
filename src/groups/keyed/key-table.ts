import { grown, none } from './record-store.ts';

const initialKeys = 256;

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

/**
 * The keys with unfinished records, or kept by a member, in columns. A key is its exact bytes, here
 * as a latin1 string. When it is idle and finished it is forgotten.
 */
export class KeyTable {
  /** The range that holds the key, `none` if it is free. */
  holder = new Int32Array(initialKeys).fill(none);
  /** Records of it that are granted and not finished. */
  inHand = new Int32Array(initialKeys);
  /** Records of it that wait. */
  pending = new Int32Array(initialKeys);
  /** The first of them. */
  nextPending = new Int32Array(initialKeys);
  /** The last record filed under it. */
  tail = new Int32Array(initialKeys);
  /** The member that had it last, by number. */
  lastMember = new Int32Array(initialKeys);
  /** How many commits keep it with its holder though nothing of it is in hand. */
  kept = new Int32Array(initialKeys);
  pause = new Uint8Array(initialKeys);
  /** Records of it that wait in the log, behind all that are loaded: see spill.ts. */
  spilled = new Int32Array(initialKeys);
  readonly #ids = new Map<string, number>();
  #names: (string | undefined)[] = [];
  #used = 0;
  readonly #free: number[] = [];

  get size(): number {
    return this.#ids.size;
  }

  /** Above all numbers of keys that are in use. */
  get end(): number {
    return this.#used;
  }

  name(key: number): string {
    return this.#names[key]!;
  }

  find(name: string): number | undefined {
    return this.#ids.get(name);
  }

  take(name: string): number {
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    const key = this.#free.pop() ?? this.#used++;
    if (key === this.holder.length) this.#grow();
    this.#ids.set(name, key);
    this.#names[key] = name;
    this.holder[key] = none;
    this.inHand[key] = 0;
    this.pending[key] = 0;
    this.nextPending[key] = none;
    this.tail[key] = none;
    this.lastMember[key] = none;
    this.kept[key] = 0;
    this.pause[key] = KeyPause.none;
    this.spilled[key] = 0;
    return key;
  }

  forget(key: number): void {
    this.#ids.delete(this.#names[key]!);
    this.#names[key] = undefined;
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

  #grow(): void {
    const length = this.holder.length * 2;
    this.holder = grown(this.holder, new Int32Array(length));
    this.inHand = grown(this.inHand, new Int32Array(length));
    this.pending = grown(this.pending, new Int32Array(length));
    this.nextPending = grown(this.nextPending, new Int32Array(length));
    this.tail = grown(this.tail, new Int32Array(length));
    this.lastMember = grown(this.lastMember, new Int32Array(length));
    this.kept = grown(this.kept, new Int32Array(length));
    this.pause = grown(this.pause, new Uint8Array(length));
    this.spilled = grown(this.spilled, new Int32Array(length));
  }
}
