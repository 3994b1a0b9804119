import type { ByteReader, ByteWriter } from '../../core/bytes.ts';

const bitsPerChunk = 4096;
const wordsPerChunk = bitsPerChunk / 32;

/**
 * Which offsets of one stored partition a group is done with: all below `low`, and those above it
 * as bits. A stuck record with five million finished ones above it costs 700 kB.
 */
export class FinishedSet {
  #low: number;
  #above = 0;
  /** Chunk number (offset / 4096) => its bits. Only that of `low` may be without any. */
  readonly #chunks = new Map<number, Uint32Array>();

  constructor(low: number) {
    this.#low = low;
  }

  /** The first offset that is not finished. */
  get low(): number {
    return this.#low;
  }

  /** How many offsets above `low` are finished. */
  get above(): number {
    return this.#above;
  }

  get chunkCount(): number {
    return this.#chunks.size;
  }

  has(offset: number): boolean {
    if (offset < this.#low) return true;
    if (this.#above === 0) return false;
    const chunkNumber = Math.floor(offset / bitsPerChunk);
    const chunk = this.#chunks.get(chunkNumber);
    if (chunk === undefined) return false;
    const bit = offset - chunkNumber * bitsPerChunk;
    return (chunk[bit >>> 5]! & (1 << (bit & 31))) !== 0;
  }

  /** What is finished above `low`, ascending, as `[from, to)`. */
  *ranges(): Iterable<readonly [from: number, to: number]> {
    let [from, to] = [0, 0];
    for (const number of [...this.#chunks.keys()].sort((a, b) => a - b)) {
      const base = number * bitsPerChunk;
      const chunk = this.#chunks.get(number)!;
      for (let bit = 0; bit < bitsPerChunk; ) {
        const word = chunk[bit >>> 5]!;
        // Most words are all or nothing.
        const count = word === 0 || word === 0xffffffff ? 32 : 1;
        const isSet = count === 32 ? word !== 0 : (word & (1 << (bit & 31))) !== 0;
        if (isSet) {
          if (to !== base + bit) {
            if (to > from) yield [from, to];
            from = base + bit;
          }
          to = base + bit + count;
        }
        bit += count;
      }
    }
    if (to > from) yield [from, to];
  }

  /** Finishes `[from, to)`. */
  addRange(from: number, to: number): void {
    if (to <= this.#low) return;
    if (from <= this.#low) {
      this.moveLow(to);
      return;
    }
    for (let offset = from; offset < to; ) {
      const chunkNumber = Math.floor(offset / bitsPerChunk);
      const base = chunkNumber * bitsPerChunk;
      const end = Math.min(to - base, bitsPerChunk);
      this.#setBits(this.#chunk(chunkNumber), offset - base, end);
      offset = base + end;
    }
  }

  /** Everything below `low` is finished, whatever was known of it. */
  moveLow(low: number): void {
    if (low <= this.#low) return;
    const before = this.#low;
    this.#low = low;
    if (this.#above === 0) {
      this.#chunks.clear();
      return;
    }
    this.#forget(before, low);
    this.#advance();
  }

  /** Begins anew at `offset`: for a reset by an operator. */
  reset(offset: number): void {
    this.#low = offset;
    this.#above = 0;
    this.#chunks.clear();
  }

  write(writer: ByteWriter): void {
    // Equal sets give equal bytes: a chunk without a bit is not written.
    const chunks = [...this.#chunks].filter(([, chunk]) => chunk.some((word) => word !== 0));
    chunks.sort(([a], [b]) => a - b);
    writer.uvarint(this.#low).uvarint(chunks.length);
    for (const [number, chunk] of chunks) writer.uvarint(number).raw(bytesOf(chunk));
  }

  static read(reader: ByteReader): FinishedSet {
    const set = new FinishedSet(reader.uvarint());
    for (let left = reader.count(1 + wordsPerChunk * 4); left > 0; left--) {
      const chunk = set.#chunk(reader.uvarint());
      bytesOf(chunk).set(reader.raw(chunk.byteLength));
      for (const word of chunk) set.#above += ones(word);
    }
    return set;
  }

  #chunk(number: number): Uint32Array {
    const known = this.#chunks.get(number);
    if (known !== undefined) return known;
    const made = new Uint32Array(wordsPerChunk);
    this.#chunks.set(number, made);
    return made;
  }

  #setBits(chunk: Uint32Array, from: number, to: number): void {
    for (let bit = from; bit < to; ) {
      const word = bit >>> 5;
      const upTo = Math.min(to, (word + 1) << 5);
      const mask = maskOf(bit & 31, upTo - (word << 5));
      this.#above += ones(mask & ~chunk[word]!);
      chunk[word] = (chunk[word]! | mask) >>> 0;
      bit = upTo;
    }
  }

  /** Clears the bits of `[from, to)`. */
  #forget(from: number, to: number): void {
    const first = Math.floor(from / bitsPerChunk);
    const last = Math.floor((to - 1) / bitsPerChunk);
    // A far jump must not look at chunks that are not there.
    const numbers =
      last - first < this.#chunks.size ? between(first, last) : [...this.#chunks.keys()];
    for (const number of numbers) {
      const chunk = this.#chunks.get(number);
      if (chunk === undefined || number < first || number > last) continue;
      const base = number * bitsPerChunk;
      this.#clearBits(chunk, Math.max(from - base, 0), Math.min(to - base, bitsPerChunk));
      if (to - base >= bitsPerChunk) this.#chunks.delete(number);
    }
  }

  #clearBits(chunk: Uint32Array, from: number, to: number): void {
    for (let bit = from; bit < to; ) {
      const word = bit >>> 5;
      const upTo = Math.min(to, (word + 1) << 5);
      const mask = maskOf(bit & 31, upTo - (word << 5));
      this.#above -= ones(mask & chunk[word]!);
      chunk[word] = (chunk[word]! & ~mask) >>> 0;
      bit = upTo;
    }
  }

  /** Moves `low` over what is finished already. */
  #advance(): void {
    while (this.#above > 0) {
      const number = Math.floor(this.#low / bitsPerChunk);
      const chunk = this.#chunks.get(number);
      if (chunk === undefined) return;
      const from = this.#low - number * bitsPerChunk;
      const to = firstZero(chunk, from);
      this.#clearBits(chunk, from, to);
      this.#low += to - from;
      if (to < bitsPerChunk) {
        if (this.#above === 0) this.#chunks.delete(number);
        return;
      }
      this.#chunks.delete(number);
    }
  }
}

function bytesOf(chunk: Uint32Array): Uint8Array {
  return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

/** The bits `[from, to)` of a word, `to` at most 32. */
function maskOf(from: number, to: number): number {
  const below = to === 32 ? 0xffffffff : (1 << to) - 1;
  return (below & ~((1 << from) - 1)) >>> 0;
}

function ones(word: number): number {
  let v = word - ((word >>> 1) & 0x55555555);
  v = (v & 0x33333333) + ((v >>> 2) & 0x33333333);
  return Math.imul((v + (v >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

function firstZero(chunk: Uint32Array, from: number): number {
  for (let bit = from; bit < bitsPerChunk; ) {
    const zeros = ~chunk[bit >>> 5]! & ~((1 << (bit & 31)) - 1);
    if (zeros !== 0) return (bit & ~31) + (31 - Math.clz32(zeros & -zeros));
    bit = (bit & ~31) + 32;
  }
  return bitsPerChunk;
}

function* between(first: number, last: number): Generator<number> {
  for (let number = first; number <= last; number++) yield number;
}
