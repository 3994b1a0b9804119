import type { ByteReader, ByteWriter } from '../../core/bytes.ts';

/** `count` neighbouring lane numbers from `n` on are as many offsets from `offset` on. */
export interface GrantRun {
  readonly n: number;
  readonly count: number;
  readonly partition: number;
  readonly offset: number;
}

/** The unfinished grants of one range, ascending by lane number. Neighbours are one run. */
export class GrantRuns {
  #n: number[] = [];
  #count: number[] = [];
  #partition: number[] = [];
  #offset: number[] = [];
  /** The live runs begin here. */
  #head = 0;
  #records = 0;

  /** How many grants there are. */
  get records(): number {
    return this.#records;
  }

  get length(): number {
    return this.#n.length - this.#head;
  }

  /** The lowest lane number, Infinity if there is none. */
  get firstN(): number {
    return this.length === 0 ? Number.POSITIVE_INFINITY : this.#n[this.#head]!;
  }

  /** The first grant from a lane number on. */
  firstFrom(from: number): GrantRun | undefined {
    const i = this.#firstAt(from);
    if (i >= this.#n.length) return undefined;
    const n = Math.max(this.#n[i]!, from);
    const skipped = n - this.#n[i]!;
    const count = this.#count[i]! - skipped;
    return { n, count, partition: this.#partition[i]!, offset: this.#offset[i]! + skipped };
  }

  /** Behind all that there are. */
  push(n: number, count: number, partition: number, offset: number): void {
    if (count === 0) return;
    this.#records += count;
    const last = this.#n.length - 1;
    if (
      last >= this.#head &&
      this.#partition[last] === partition &&
      this.#n[last]! + this.#count[last]! === n &&
      this.#offset[last]! + this.#count[last]! === offset
    ) {
      this.#count[last]! += count;
      return;
    }
    this.#n.push(n);
    this.#count.push(count);
    this.#partition.push(partition);
    this.#offset.push(offset);
  }

  /** Calls back with each run, cut to `[from, to)`. */
  forEach(
    from: number,
    to: number,
    visit: (n: number, count: number, partition: number, offset: number) => void,
  ): void {
    if (from >= to) return;
    for (let i = this.#firstAt(from); i < this.#n.length && this.#n[i]! < to; i++) {
      const start = Math.max(this.#n[i]!, from);
      const end = Math.min(this.#n[i]! + this.#count[i]!, to);
      const skipped = start - this.#n[i]!;
      visit(start, end - start, this.#partition[i]!, this.#offset[i]! + skipped);
    }
  }

  /** Takes out the grants of `[from, to)`, calling back with each run. */
  remove(
    from: number,
    to: number,
    visit: (n: number, count: number, partition: number, offset: number) => void,
  ): void {
    if (from >= to) return;
    this.forEach(from, to, visit);
    const first = this.#firstAt(from);
    let end = first;
    while (end < this.#n.length && this.#n[end]! < to) end++;
    if (first === end) return;
    const kept = new GrantRuns();
    for (const i of first === end - 1 ? [first] : [first, end - 1]) {
      const runEnd = this.#n[i]! + this.#count[i]!;
      const partition = this.#partition[i]!;
      const shift = this.#offset[i]! - this.#n[i]!;
      if (this.#n[i]! < from && i === first) {
        kept.push(this.#n[i]!, Math.min(from, runEnd) - this.#n[i]!, partition, this.#offset[i]!);
      }
      if (runEnd > to && i === end - 1) kept.push(to, runEnd - to, partition, to + shift);
    }
    for (let i = first; i < end; i++) this.#records -= this.#count[i]!;
    this.#records += kept.#records;
    this.#replace(first, end, kept);
  }

  write(writer: ByteWriter): void {
    writer.uvarint(this.length);
    for (let i = this.#head; i < this.#n.length; i++) {
      writer.uvarint(this.#n[i]!).uvarint(this.#count[i]!);
      writer.uvarint(this.#partition[i]!).uvarint(this.#offset[i]!);
    }
  }

  static read(reader: ByteReader): GrantRuns {
    const runs = new GrantRuns();
    for (let left = reader.count(4); left > 0; left--) {
      runs.push(reader.uvarint(), reader.uvarint(), reader.uvarint(), reader.uvarint());
    }
    return runs;
  }

  /** The first run that ends above `n`. */
  #firstAt(n: number): number {
    let low = this.#head;
    let high = this.#n.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#n[middle]! + this.#count[middle]! <= n) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #replace(first: number, end: number, kept: GrantRuns): void {
    if (first === this.#head && kept.length <= 1) {
      // The usual case, a commit: the front goes, without moving what stays.
      this.#head = end - kept.length;
      if (kept.length === 1) {
        this.#n[this.#head] = kept.#n[0]!;
        this.#count[this.#head] = kept.#count[0]!;
        this.#partition[this.#head] = kept.#partition[0]!;
        this.#offset[this.#head] = kept.#offset[0]!;
      }
      this.#compact();
      return;
    }
    this.#n.splice(first, end - first, ...kept.#n);
    this.#count.splice(first, end - first, ...kept.#count);
    this.#partition.splice(first, end - first, ...kept.#partition);
    this.#offset.splice(first, end - first, ...kept.#offset);
  }

  #compact(): void {
    if (this.#head < 64 || this.#head * 2 < this.#n.length) return;
    this.#n = this.#n.slice(this.#head);
    this.#count = this.#count.slice(this.#head);
    this.#partition = this.#partition.slice(this.#head);
    this.#offset = this.#offset.slice(this.#head);
    this.#head = 0;
  }
}
