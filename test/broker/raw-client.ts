/** A client that sends whatever bytes it is given, and sees frames and the end of the connection. */
import { connect, type Socket } from 'node:net';
import { FrameReader, frameBytesUnknown } from '../../src/net/frame-reader.ts';
import type { HostPort } from '../../src/net/listeners.ts';
import { requestHeaderVersion } from '../../src/protocol/frame.ts';

export class RawClient {
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  readonly #frames: Buffer[] = [];
  #onNews: (() => void) | undefined;
  #isClosed = false;

  static async connect(address: HostPort): Promise<RawClient> {
    const socket = connect({ host: address.host, port: address.port, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new RawClient(socket);
  }

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#isClosed = true;
        this.#onNews?.();
        resolve();
      });
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The frames that came and were not taken yet, without their sizes. */
  get frames(): readonly Buffer[] {
    return this.#frames;
  }

  write(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** The next frame, or undefined if the connection ends without one. */
  async next(): Promise<Buffer | undefined> {
    while (this.#frames.length === 0 && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        this.#onNews = resolve;
      });
    }
    return this.#frames.shift();
  }

  close(): void {
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    this.#reader.feed(chunk);
    while (this.#reader.frameBytes !== frameBytesUnknown) {
      const frame = this.#reader.next();
      if (frame === null) break;
      this.#frames.push(frame);
    }
    this.#onNews?.();
  }
}

/** A whole request around a body: size, header, body. */
export function requestFrame(
  apiKey: number,
  apiVersion: number,
  body: Uint8Array,
  correlationId = 1,
  clientId: string | null = 'bad',
): Buffer {
  const id = Buffer.from(clientId ?? '');
  const tags = requestHeaderVersion(apiKey, apiVersion) === 2 ? 1 : 0;
  const head = Buffer.alloc(4 + 8 + 2 + id.length + tags);
  head.writeInt32BE(head.length - 4 + body.length, 0);
  head.writeInt16BE(apiKey, 4);
  head.writeInt16BE(apiVersion, 6);
  head.writeInt32BE(correlationId, 8);
  head.writeInt16BE(clientId === null ? -1 : id.length, 12);
  id.copy(head, 14);
  return Buffer.concat([head, body]);
}

/** Bytes with their size in front of them. */
export function framed(bytes: Uint8Array): Buffer {
  const size = Buffer.alloc(4);
  size.writeInt32BE(bytes.length);
  return Buffer.concat([size, bytes]);
}
