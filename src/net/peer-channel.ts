import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Clock } from '../core/clock.ts';

/**
 * One connection between two nodes of a cluster. Everything is in frames: a length (u32, big
 * endian) and as many bytes. Before anything else the two prove to each other that they know the
 * secret of the cluster, and say who they are:
 *
 *   dialer   -> hello          hello = magic "KLPR" | u16 version | nonce (16) | who it is
 *   acceptor -> hello, proof   proof = HMAC-SHA256(secret, role | hello of dialer | of acceptor)
 *   dialer   -> proof
 *
 * The secret keeps strangers out; it does not hide what is said, nor does it protect it from
 * somebody on the way: for that the network between the nodes has to be a trusted one.
 */
export interface PeerChannelOptions {
  readonly secret: string;
  /** Who this node is, at this moment. */
  readonly hello: () => Buffer;
  readonly isDialer: boolean;
  readonly frameBytesMax: number;
  readonly clock: Clock;
  /** Who the other one is: throws if it has no business here. */
  readonly onHello: (hello: Buffer) => void;
  readonly onReady: () => void;
  readonly onFrame: (frame: Buffer) => void;
  /** Once, with what went wrong. */
  readonly onClosed: (reason: string) => void;
}

const magic = Buffer.from('KLPR', 'latin1');
const version = 1;
const nonceBytes = 16;
const headBytes = magic.length + 2 + nonceBytes;
const proofBytes = 32;
/** Nobody who is not known yet may take more memory, or time. */
const helloBytesMax = 4096;
const helloMsMax = 5000;
/** What the other side does not take is not worth keeping: it will ask for what it lacks. */
const unsentBytesMax = 64 * 1024 * 1024;

export class PeerChannel {
  readonly #socket: Socket;
  readonly #options: PeerChannelOptions;
  readonly #ownHello: Buffer;
  #otherHello: Buffer | undefined;
  #isReady = false;
  #wasReady = false;
  #isClosed = false;
  readonly #cancelDeadline: () => void;
  /** The frame that is being read, and how much of it is there. */
  readonly #length = Buffer.alloc(4);
  #lengthFilled = 0;
  #frame: Buffer | undefined;
  #filled = 0;

  constructor(socket: Socket, options: PeerChannelOptions) {
    this.#socket = socket;
    this.#options = options;
    const head = Buffer.alloc(headBytes);
    magic.copy(head, 0);
    head.writeUInt16BE(version, magic.length);
    randomBytes(nonceBytes).copy(head, magic.length + 2);
    this.#ownHello = Buffer.concat([head, options.hello()]);
    socket.setNoDelay(true);
    // The chunk may be in a buffer that the next read of any socket fills anew.
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    // One that was accepted waits for it.
    socket.resume();
    socket.on('error', (error) => this.close(error.message));
    socket.on('close', () => this.close('the connection was closed'));
    this.#cancelDeadline = options.clock.after(helloMsMax, () => this.close('no hello in time'));
    if (options.isDialer) this.#write([this.#ownHello]);
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether the two ever knew each other. */
  get wasReady(): boolean {
    return this.#wasReady;
  }

  /** False if it cannot be sent now; then it is lost. */
  send(pieces: readonly Uint8Array[]): boolean {
    if (!this.#isReady || this.#socket.writableLength > unsentBytesMax) return false;
    this.#write(pieces);
    return true;
  }

  close(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isReady = false;
    this.#cancelDeadline();
    this.#socket.destroy();
    this.#options.onClosed(reason);
  }

  #write(pieces: readonly Uint8Array[]): void {
    let bytes = 0;
    for (const piece of pieces) bytes += piece.length;
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32BE(bytes, 0);
    this.#socket.cork();
    this.#socket.write(length);
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }

  #onData(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.#isClosed; ) at = this.#take(chunk, at);
  }

  /** Takes what it can use of the chunk from `at` on, and answers where it goes on. */
  #take(chunk: Buffer, at: number): number {
    if (this.#frame === undefined) {
      this.#length[this.#lengthFilled++] = chunk[at]!;
      if (this.#lengthFilled === 4) this.#beginFrame(this.#length.readUInt32BE(0));
      return at + 1;
    }
    const copied = chunk.copy(this.#frame, this.#filled, at);
    this.#filled += copied;
    if (this.#filled === this.#frame.length) this.#endFrame(this.#frame);
    return at + copied;
  }

  #beginFrame(bytes: number): void {
    this.#lengthFilled = 0;
    const bytesMax = this.#isReady ? this.#options.frameBytesMax : helloBytesMax;
    if (bytes === 0 || bytes > bytesMax) {
      this.close(`a frame of ${bytes} bytes`);
      return;
    }
    this.#frame = Buffer.allocUnsafe(bytes);
    this.#filled = 0;
  }

  #endFrame(frame: Buffer): void {
    this.#frame = undefined;
    if (this.#isReady) this.#options.onFrame(frame);
    else if (this.#otherHello === undefined) this.#onHello(frame);
    else this.#onProof(frame);
  }

  #onHello(frame: Buffer): void {
    const isHello = frame.length >= headBytes && frame.subarray(0, magic.length).equals(magic);
    if (!isHello || frame.readUInt16BE(magic.length) !== version) {
      this.close('not a node of Keylane, or one of another version');
      return;
    }
    this.#otherHello = frame;
    if (!this.#options.isDialer) {
      this.#write([this.#ownHello]);
      this.#write([this.#proof(false)]);
    }
  }

  #onProof(frame: Buffer): void {
    const expected = this.#proof(!this.#options.isDialer);
    if (frame.length !== proofBytes || !timingSafeEqual(frame, expected)) {
      this.close('it does not know the secret of the cluster');
      return;
    }
    try {
      this.#options.onHello(this.#otherHello!.subarray(headBytes));
    } catch (error) {
      this.close((error as Error).message);
      return;
    }
    if (this.#options.isDialer) this.#write([this.#proof(true)]);
    this.#isReady = true;
    this.#wasReady = true;
    this.#cancelDeadline();
    this.#options.onReady();
  }

  #proof(ofDialer: boolean): Buffer {
    const { isDialer, secret } = this.#options;
    const [dialers, acceptors] = isDialer
      ? [this.#ownHello, this.#otherHello!]
      : [this.#otherHello!, this.#ownHello];
    return createHmac('sha256', secret)
      .update(ofDialer ? 'dialer' : 'acceptor')
      .update(dialers)
      .update(acceptors)
      .digest();
  }
}
