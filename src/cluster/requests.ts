import { firstOtherKind } from './peer-codec.ts';

/** Answers a request of another node. */
export type RequestHandler = (request: Buffer) => Promise<readonly Uint8Array[]>;

/** Requests and answers between nodes: `u8 kind | u32 number | bytes`. */
const Kind = { request: firstOtherKind, answer: firstOtherKind + 1, failed: firstOtherKind + 2 };
const headBytes = 5;
/** Under way to one node. */
const openMax = 10_000;

/** The requests of this node to one other, which answers them in any order. */
export class Requests {
  readonly #send: (pieces: readonly Uint8Array[]) => boolean;
  readonly #open = new Map<number, (answer: Buffer | undefined) => void>();
  #next = 0;

  constructor(send: (pieces: readonly Uint8Array[]) => boolean) {
    this.#send = send;
  }

  /** Undefined if the node cannot be reached, or goes away before it answers. */
  ask(request: readonly Uint8Array[]): Promise<Buffer | undefined> {
    if (this.#open.size >= openMax) return Promise.resolve(undefined);
    const number = this.#next;
    this.#next = (this.#next + 1) >>> 0;
    if (!this.#send([head(Kind.request, number), ...request])) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#open.set(number, resolve));
  }

  onAnswer(frame: Buffer): void {
    if (frame.length < headBytes) return;
    const number = frame.readUInt32BE(1);
    const resolve = this.#open.get(number);
    this.#open.delete(number);
    resolve?.(frame[0] === Kind.answer ? frame.subarray(headBytes) : undefined);
  }

  /** The node is not there any more. */
  fail(): void {
    for (const resolve of this.#open.values()) resolve(undefined);
    this.#open.clear();
  }

  /** The other side: lets the handler answer what is in a frame. */
  static serve(
    frame: Buffer,
    handler: RequestHandler | undefined,
    reply: (pieces: readonly Uint8Array[]) => void,
  ): void {
    if (frame[0] !== Kind.request || frame.length < headBytes) {
      throw new RangeError(`a frame of kind ${frame[0]}`);
    }
    const number = frame.readUInt32BE(1);
    const failed = (): void => reply([head(Kind.failed, number)]);
    if (handler === undefined) failed();
    else {
      handler(frame.subarray(headBytes)).then(
        (answer) => reply([head(Kind.answer, number), ...answer]),
        failed,
      );
    }
  }
}

function head(kind: number, number: number): Buffer {
  const bytes = Buffer.allocUnsafe(headBytes);
  bytes[0] = kind;
  bytes.writeUInt32BE(number, 1);
  return bytes;
}
