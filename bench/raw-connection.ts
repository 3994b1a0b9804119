import { connect, type Socket } from 'node:net';
import { decode } from '../src/protocol/codec.ts';
import { type ApiTable, encodeRequest, responseHeaderVersion } from '../src/protocol/frame.ts';
import { Reader } from '../src/protocol/reader.ts';
import type { Input, Output } from '../src/protocol/schema-types.ts';

/** Called with the body of an answer, a view that is good during the call only. */
export type OnAnswer = (frame: Buffer, bodyStart: number) => void;

const receiveBytes = 256 * 1024;

/**
 * One connection to a broker, without any of a real client's work: requests go out as they are
 * given, however many are in flight, and answers come back in order. It reads into one buffer and
 * gathers a frame in another that is used again, so that it costs little beside the broker.
 */
export class RawConnection {
  readonly #socket: Socket;
  readonly #waiting: { readonly headerVersion: 0 | 1; readonly onAnswer: OnAnswer }[] = [];
  #frame = Buffer.allocUnsafeSlow(1024 * 1024);
  /** Bytes of the present frame that are here, its size included. */
  #filled = 0;
  #onFailure: (error: Error) => void = () => undefined;
  #closed = false;

  private constructor(host: string, port: number) {
    this.#socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafeSlow(receiveBytes),
        callback: (bytes, buffer) => {
          this.#take(Buffer.from(buffer.buffer, buffer.byteOffset, bytes));
          return true;
        },
      },
    });
    this.#socket.on('error', (error) => this.#onFailure(error));
    this.#socket.on('close', () => {
      if (!this.#closed) this.#onFailure(new Error('the broker closed the connection'));
    });
  }

  static open(host: string, port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const connection = new RawConnection(host, port);
      connection.onFailure(reject);
      connection.#socket.once('connect', () => resolve(connection));
    });
  }

  /** From now on failures are told here; until then they go nowhere. */
  onFailure(callback: (error: Error) => void): void {
    this.#onFailure = callback;
  }

  /** Sends a whole request that was encoded before. */
  send(pieces: readonly Buffer[], headerVersion: 0 | 1, onAnswer: OnAnswer): void {
    this.#waiting.push({ headerVersion, onAnswer });
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }

  /** One request and its answer, which owns its bytes. */
  call<Q extends ApiTable, R extends ApiTable>(
    request: Q,
    response: R,
    version: number,
    value: Input<Q>,
  ): Promise<Output<R>> {
    return new Promise((resolve, reject) => {
      this.onFailure(reject);
      const pieces = encodeRequest(request, version, 0, 'bench', value);
      const headerVersion = responseHeaderVersion(request.apiKey, version);
      this.send(pieces, headerVersion, (frame, bodyStart) => {
        try {
          resolve(decode(response, version, Buffer.from(frame), bodyStart, frame.length));
        } catch (error) {
          reject(error as Error);
        }
      });
    });
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      const wanted = this.#filled < 4 ? 4 : 4 + this.#frame.readInt32BE(0);
      const bytes = Math.min(chunk.length - at, wanted - this.#filled);
      if (wanted > this.#frame.length) this.#grow(wanted);
      chunk.copy(this.#frame, this.#filled, at, at + bytes);
      this.#filled += bytes;
      at += bytes;
      if (this.#filled > 4 && this.#filled === 4 + this.#frame.readInt32BE(0)) this.#answered();
    }
  }

  #answered(): void {
    const frame = this.#frame.subarray(4, this.#filled);
    this.#filled = 0;
    const waiting = this.#waiting.shift();
    if (waiting === undefined) {
      this.#onFailure(new Error('an answer that nobody asked for'));
      return;
    }
    const reader = new Reader(frame, 4, frame.length);
    if (waiting.headerVersion === 1) reader.skipTags();
    waiting.onAnswer(frame, reader.position);
  }

  #grow(bytes: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(bytes, this.#frame.length * 2));
    this.#frame.copy(grown, 0, 0, this.#filled);
    this.#frame = grown;
  }
}
