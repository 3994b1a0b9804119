/**
 * The answers that one connection owes, in the order of its requests. Replies come in any order;
 * bytes leave in request order, as many ready answers as possible in one vectored write, and
 * nothing is handed to the stream before it has taken what it was handed before. So memory for
 * answers can be given back piece by piece, and a reader that stalls shows.
 *
 * Invariant: answers from `#head` up to `#unsent` (exclusive) are wholly handed to the stream.
 */
import type { Writable } from 'node:stream';
import { assert } from '../core/assert.ts';

/** Called once: true when all bytes are with the kernel, false when the connection died before. */
export type AfterWritten = (whole: boolean) => void;

/** The one answer to one request. */
export interface Reply {
  /**
   * Answers the request; to be called exactly once, at any time and in any order between the
   * requests of a connection. `null` answers with nothing but keeps the order (acks=0). The pieces
   * include the answer's own size field; they and their list belong to the network layer until
   * `afterWritten`. After the connection has died, pieces are ignored and `afterWritten(false)` is
   * called at once.
   */
  send(pieces: readonly Uint8Array[] | null, afterWritten?: AfterWritten): void;
  /**
   * Calls back once when all earlier answers of this connection are with the kernel, at once if
   * they are already, and never if the connection dies. Who answers with much data builds it then,
   * so that a client which asks a lot and reads nothing costs one answer and not all of them.
   */
  onTurn(callback: () => void): void;
}

/** What the queue tells the connection that it belongs to. */
export interface AnswerQueueOwner {
  /** The bytes in flight changed by `delta`; an answer may be ready to be flushed. */
  onInFlightChange(delta: number): void;
  /** So many bytes are now handed to the stream. */
  onWriting(bytes: number): void;
}

/** Bytes of one vectored write: small enough for its progress to be seen and memory to return. */
const writeBytesMin = 256 * 1024;
/**
 * And where the socket takes so much at once, which it does not of a slow reader: the system lets
 * its buffer grow with what the reader takes. Each write costs; with four of them for a megabyte
 * a large answer costs the broker a sixth more processor time than with one.
 */
const writeBytesMax = 1024 * 1024;
/** Pieces of one vectored write, below Linux's IOV_MAX of 1024. */
const writePiecesMax = 512;
/**
 * Neighbouring pieces up to this size are copied together: 200 pieces of 100 bytes cost the server
 * 23 µs joined and 35 µs as they are.
 */
const joinBytesMax = 1024;

export class AnswerQueue {
  readonly #stream: Writable;
  readonly #owner: AnswerQueueOwner;
  #head: Answer | null = null;
  #tail: Answer | null = null;
  #unsent: Answer | null = null;
  /** Where in `#unsent` the next write starts. */
  #pieceIndex = 0;
  #pieceOffset = 0;
  #count = 0;
  #writing = false;
  #writeBytes = writeBytesMin;
  #dead = false;

  constructor(stream: Writable, owner: AnswerQueueOwner) {
    this.#stream = stream;
    this.#owner = owner;
  }

  /** Requests that are unanswered or whose answer is not yet written. */
  get count(): number {
    return this.#count;
  }

  /** Whether the stream holds bytes that it has not yet passed on. */
  get writing(): boolean {
    return this.#writing;
  }

  /** Adds a request of `requestBytes` that is now in flight. */
  push(requestBytes: number): Reply {
    const answer = new Answer(this, requestBytes);
    if (this.#tail === null) this.#head = answer;
    else this.#tail.next = answer;
    this.#tail = answer;
    this.#unsent ??= answer;
    this.#count += 1;
    this.#owner.onInFlightChange(requestBytes);
    return answer;
  }

  /** Hands the stream what is ready, unless it is still busy. */
  flush(): void {
    if (this.#writing || this.#dead) return;
    const batch: Uint8Array[] = [];
    const bytes = this.#takeBatch(batch);
    if (bytes === 0) {
      this.#finishSent();
      return;
    }
    this.#writing = true;
    this.#owner.onWriting(bytes);
    const chunks = joinSmall(batch);
    const last = chunks.length - 1;
    if (last > 0) this.#stream.cork();
    for (let i = 0; i < last; i++) this.#stream.write(chunks[i]!);
    this.#stream.write(chunks[last]!, this.#afterWrite);
    if (last > 0) this.#stream.uncork();
    if (this.#stream.writableLength > 0) this.#writeBytes = writeBytesMin;
    else if (bytes === this.#writeBytes) {
      this.#writeBytes = Math.min(2 * bytes, writeBytesMax);
    }
  }

  /** The stream is closed and has let go of all buffers: nothing is written any more. */
  kill(): void {
    if (this.#dead) return;
    this.#dead = true;
    let answer = this.#head;
    this.#head = null;
    this.#tail = null;
    this.#unsent = null;
    this.#count = 0;
    this.#writing = false;
    while (answer !== null) {
      const next = answer.next;
      this.#owner.onInFlightChange(-answer.bytes);
      answer.finish(false);
      answer = next;
    }
  }

  /** For `Answer` only. */
  onAnswered(delta: number): void {
    this.#owner.onInFlightChange(delta);
  }

  /** For `Answer` only. */
  isHead(answer: Answer): boolean {
    return this.#head === answer;
  }

  readonly #afterWrite = (error?: Error | null): void => {
    // A failed stream emits `close` next, and `kill` gives everything back.
    if (this.#dead || error) return;
    this.#writing = false;
    this.#finishSent();
    this.flush();
  };

  /** Moves up to one write's worth of ready pieces into `batch`; returns their bytes. */
  #takeBatch(batch: Uint8Array[]): number {
    let bytes = 0;
    while (this.#unsent !== null && this.#unsent.pieces !== null) {
      const pieces = this.#unsent.pieces;
      while (this.#pieceIndex < pieces.length) {
        if (bytes === this.#writeBytes || batch.length === writePiecesMax) return bytes;
        const piece = pieces[this.#pieceIndex]!;
        const start = this.#pieceOffset;
        const end = Math.min(piece.length, start + this.#writeBytes - bytes);
        if (end > start) {
          batch.push(end - start === piece.length ? piece : piece.subarray(start, end));
          bytes += end - start;
        }
        this.#pieceOffset = end;
        if (end === piece.length) {
          this.#pieceIndex += 1;
          this.#pieceOffset = 0;
        }
      }
      this.#unsent = this.#unsent.next;
      this.#pieceIndex = 0;
    }
    return bytes;
  }

  /** Lets go of the answers that are wholly written, and gives the next one its turn. */
  #finishSent(): void {
    while (this.#head !== this.#unsent) {
      const answer: Answer = this.#head!;
      this.#head = answer.next;
      if (answer.next === null) this.#tail = null;
      this.#count -= 1;
      this.#owner.onInFlightChange(-answer.bytes);
      answer.finish(true);
    }
    this.#head?.takeTurn();
  }
}

class Answer implements Reply {
  next: Answer | null = null;
  /** Null while unanswered. */
  pieces: readonly Uint8Array[] | null = null;
  /** Counted in flight: the request's bytes, and from the answer on the answer's. */
  bytes: number;
  readonly #queue: AnswerQueue;
  #finished = false;
  #afterWritten: AfterWritten | undefined;
  #turn: (() => void) | null = null;

  constructor(queue: AnswerQueue, requestBytes: number) {
    this.#queue = queue;
    this.bytes = requestBytes;
  }

  send(pieces: readonly Uint8Array[] | null, afterWritten?: AfterWritten): void {
    assert(this.pieces === null, 'a request is answered once');
    if (this.#finished) {
      this.pieces = noPieces;
      afterWritten?.(false);
      return;
    }
    this.pieces = pieces ?? noPieces;
    this.#afterWritten = afterWritten;
    let bytes = 0;
    for (const piece of this.pieces) bytes += piece.length;
    const delta = bytes - this.bytes;
    this.bytes = bytes;
    this.#queue.onAnswered(delta);
  }

  onTurn(callback: () => void): void {
    if (this.#finished) return;
    this.#turn = callback;
    if (this.#queue.isHead(this)) this.takeTurn();
  }

  takeTurn(): void {
    const turn = this.#turn;
    this.#turn = null;
    turn?.();
  }

  finish(whole: boolean): void {
    this.#finished = true;
    const afterWritten = this.#afterWritten;
    this.#afterWritten = undefined;
    this.#turn = null;
    afterWritten?.(whole);
  }
}

const noPieces: readonly Uint8Array[] = [];

/** Copies runs of small pieces together and leaves large ones as they are. */
export function joinSmall(pieces: Uint8Array[]): Uint8Array[] {
  const joined: Uint8Array[] = [];
  let start = 0;
  while (start < pieces.length) {
    let end = start;
    let bytes = 0;
    while (end < pieces.length && pieces[end]!.length <= joinBytesMax) {
      bytes += pieces[end]!.length;
      end += 1;
    }
    if (end - start > 1) {
      joined.push(concat(pieces, start, end, bytes));
      start = end;
    } else {
      joined.push(pieces[start]!);
      start += 1;
    }
  }
  return joined;
}

function concat(pieces: readonly Uint8Array[], start: number, end: number, bytes: number): Buffer {
  const whole = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (let i = start; i < end; i++) {
    whole.set(pieces[i]!, at);
    at += pieces[i]!.length;
  }
  return whole;
}
