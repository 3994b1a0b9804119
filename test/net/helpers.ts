/** What the tests of the network layer share: a fake clock, streams in memory, and a client. */
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Clock } from '../../src/core/clock.ts';
import type { Reply } from '../../src/net/answer-queue.ts';
import type { Connection, Session } from '../../src/net/connection.ts';
import { FrameReader, frameBytesUnknown } from '../../src/net/frame-reader.ts';
import type { HostPort } from '../../src/net/listeners.ts';
import { NetServer, type NetServerOptions } from '../../src/net/server.ts';

/** A clock that only `advance` moves. */
export class FakeClock implements Clock {
  #nowMs = 0;
  #timers: { atMs: number; callback: () => void }[] = [];

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  soon(callback: () => void): void {
    setImmediate(callback);
  }

  get timerCount(): number {
    return this.#timers.length;
  }

  /** Runs due timers in order of time. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const due = this.#timers.filter((timer) => timer.atMs <= endMs);
      due.sort((a, b) => a.atMs - b.atMs);
      const first = due[0];
      if (first === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== first);
      this.#nowMs = Math.max(this.#nowMs, first.atMs);
      first.callback();
    }
    this.#nowMs = endMs;
  }

  /** Moves the time without running timers in between, as when the process was stopped. */
  jump(ms: number): void {
    this.#nowMs += ms;
    this.advance(0);
  }
}

/** Resolves when `condition` holds; looks again after each round of the event loop. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Lets some rounds of the event loop pass, for things that are not to happen. */
export async function rounds(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** One end of a stream in memory. What is written arrives at `peer` in a later turn. */
export class MemoryDuplex extends Duplex {
  peer!: MemoryDuplex;
  readonly remoteAddress: string;
  readonly remotePort = 40_000;
  readonly localAddress = '127.0.0.1';
  readonly localPort = 9092;
  /** While true, nothing that is written is accepted: a reader with a full socket buffer. */
  stuck = false;
  #stuckWrite: (() => void) | null = null;

  constructor(remoteAddress: string) {
    super({ allowHalfOpen: false });
    this.remoteAddress = remoteAddress;
  }

  /** Whether a write waits for `unstick`. */
  get stalled(): boolean {
    return this.#stuckWrite !== null;
  }

  unstick(): void {
    this.stuck = false;
    const write = this.#stuckWrite;
    this.#stuckWrite = null;
    write?.();
  }

  override _read(): void {
    // Bytes are pushed by the other end as they are written.
  }

  override _write(chunk: Buffer, _encoding: string, callback: (error?: Error) => void): void {
    this.#pass([chunk], callback);
  }

  override _writev(
    chunks: { chunk: Buffer; encoding: BufferEncoding }[],
    callback: (error?: Error) => void,
  ): void {
    this.#pass(
      chunks.map((entry) => entry.chunk),
      callback,
    );
  }

  override _final(callback: (error?: Error) => void): void {
    this.peer.push(null);
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    if (!this.peer.destroyed) this.peer.push(null);
    callback(error);
  }

  #pass(chunks: Buffer[], callback: (error?: Error) => void): void {
    const pass = (): void => {
      for (const chunk of chunks) if (!this.peer.destroyed) this.peer.push(Buffer.from(chunk));
      setImmediate(callback);
    };
    if (this.stuck) this.#stuckWrite = pass;
    else pass();
  }
}

export function memoryPair(clientAddress = '10.0.0.1'): {
  client: MemoryDuplex;
  server: MemoryDuplex;
} {
  const client = new MemoryDuplex('127.0.0.1');
  const server = new MemoryDuplex(clientAddress);
  client.peer = server;
  server.peer = client;
  return { client, server };
}

/** A frame with its size field. */
export function framed(body: Uint8Array): Buffer {
  const frame = Buffer.alloc(4 + body.length);
  frame.writeInt32BE(body.length);
  frame.set(body, 4);
  return frame;
}

/** Takes frames out of what a stream receives. */
export class FrameCollector {
  readonly frames: Buffer[] = [];
  ended = false;
  closed = false;
  readonly #reader = new FrameReader();

  constructor(stream: Duplex) {
    stream.on('data', (chunk: Buffer) => this.#onData(chunk));
    stream.on('end', () => {
      this.ended = true;
    });
    stream.on('close', () => {
      this.closed = true;
    });
    stream.on('error', () => {
      this.closed = true;
    });
  }

  get texts(): string[] {
    return this.frames.map((frame) => frame.toString('latin1'));
  }

  #onData(chunk: Buffer): void {
    this.#reader.feed(chunk);
    while (this.#reader.frameBytes !== frameBytesUnknown) {
      const frame = this.#reader.next();
      if (frame === null) return;
      this.frames.push(frame);
    }
  }
}

/** A request that the session of a test has taken and not yet answered. */
export interface Taken {
  readonly text: string;
  readonly bytes: number;
  readonly reply: Reply;
  readonly connection: Connection;
}

/** A server whose requests wait in `taken` until the test answers them. */
export class TestServer {
  readonly clock = new FakeClock();
  readonly taken: Taken[] = [];
  readonly connections: Connection[] = [];
  readonly closed: Connection[] = [];
  readonly fatal: unknown[] = [];
  readonly net: NetServer;
  /** Called first, with the whole frame. */
  onFrame: (frame: Buffer, reply: Reply) => void = () => undefined;
  /** Called for each request before it is filed. */
  onRequest: (taken: Taken) => void = () => undefined;

  constructor(limits: NetServerOptions['limits'] = {}) {
    this.net = new NetServer({
      clock: this.clock,
      limits,
      openSession: (connection) => this.#open(connection),
      isMalformed: (error) => error instanceof SyntaxError,
      onFatal: (error) => this.fatal.push(error),
    });
  }

  /** Connects a stream in memory. */
  connect(clientAddress?: string): { client: MemoryDuplex; server: MemoryDuplex } {
    const pair = memoryPair(clientAddress);
    this.net.adopt(pair.server);
    return pair;
  }

  #open(connection: Connection): Session {
    this.connections.push(connection);
    return {
      onFrame: (frame, reply) => {
        const text = frame.toString('latin1', 0, 32);
        const taken = { text, bytes: frame.length, reply, connection };
        this.onFrame(frame, reply);
        this.onRequest(taken);
        this.taken.push(taken);
      },
      onClose: () => this.closed.push(connection),
    };
  }
}

/** Sends `text` as a whole framed answer. */
export function answer(reply: Reply, text: string, afterWritten?: (whole: boolean) => void): void {
  reply.send([framed(Buffer.from(text, 'latin1'))], afterWritten);
}

/** A request of 12 bytes or more that `text` begins. */
export function request(text: string, bytes = 12): Buffer {
  const body = Buffer.alloc(Math.max(bytes, text.length), '.');
  body.write(text, 'latin1');
  return framed(body);
}

export async function connectTo(at: HostPort): Promise<Socket> {
  const socket = connect({ host: at.host, port: at.port, noDelay: true });
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}
