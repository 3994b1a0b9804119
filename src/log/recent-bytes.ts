/**
 * The journal's last bytes as they were written, so that recent records are read from memory and
 * never from the disk. Pieces arrive in the order of their positions; the oldest are dropped when
 * the bytes held exceed the bound. A batch always lies within one piece.
 */
export class RecentBytes {
  readonly #bytesMax: number;
  /** Parallel queues; the live part begins at #first. */
  #positions: number[] = [];
  #pieces: Buffer[] = [];
  #first = 0;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(position: number, piece: Buffer): void {
    this.#positions.push(position);
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    while (this.#bytes > this.#bytesMax && this.#first < this.#pieces.length - 1) {
      this.#bytes -= this.#pieces[this.#first]!.length;
      this.#pieces[this.#first] = emptyPiece;
      this.#first++;
    }
    if (this.#first > 1024 && this.#first * 2 > this.#pieces.length) {
      this.#positions = this.#positions.slice(this.#first);
      this.#pieces = this.#pieces.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Forgets everything from `position` on: those bytes were not written after all. */
  truncate(position: number): void {
    while (this.#pieces.length > this.#first && this.#positions.at(-1)! >= position) {
      this.#positions.pop();
      this.#bytes -= this.#pieces.pop()!.length;
    }
  }

  /** A view of `bytes` bytes at `position`; undefined when they are not held. */
  read(position: number, bytes: number): Buffer | undefined {
    let low = this.#first;
    let high = this.#pieces.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#positions[middle]! <= position) low = middle + 1;
      else high = middle;
    }
    const found = low - 1;
    if (found < this.#first) return undefined;
    const piece = this.#pieces[found]!;
    const start = position - this.#positions[found]!;
    return start + bytes <= piece.length ? piece.subarray(start, start + bytes) : undefined;
  }
}

const emptyPiece = Buffer.alloc(0);
