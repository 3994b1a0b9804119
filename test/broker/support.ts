/**
 * What the tests of the broker share: a whole node in this process, on a free port with a data
 * folder of its own, and a client that sends any request in any version over a real socket.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Broker } from '../../src/broker/broker.ts';
import { type Settings, withDefaults } from '../../src/config/settings.ts';
import { type CancelTimer, type Clock, systemClock } from '../../src/core/clock.ts';
import { type Logger, silentLogger } from '../../src/core/logger.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { FilePort } from '../../src/log/file-port.ts';
import { nodeFiles } from '../../src/log/node-files.ts';
import { FrameReader, frameBytesUnknown } from '../../src/net/frame-reader.ts';
import type { HostPort } from '../../src/net/listeners.ts';
import { type RunningNode, startNode } from '../../src/node.ts';
import { decode } from '../../src/protocol/codec.ts';
import { type ApiTable, encodeRequest, responseHeaderVersion } from '../../src/protocol/frame.ts';
import { Reader } from '../../src/protocol/reader.ts';
import type { Input, Output } from '../../src/protocol/schema-types.ts';
import type { BatchOpener } from '../../src/replica/open-batch.ts';
import type { Topic } from '../../src/state/topics.ts';
import type { Tenants } from '../../src/tenants.ts';

/** Small, quick and without waiting, where the defaults would make a test slow. */
const quickSettings: Partial<Settings> = {
  listen: '127.0.0.1:0',
  'admin.listen': '',
  'journal.file.bytes': 1024 * 1024,
  'disk.low.water.bytes': 0,
  'disk.reserve.bytes': 0,
  'group.initial.rebalance.delay.ms': 0,
  'group.min.session.timeout.ms': 100,
};

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
  readonly cancel: CancelTimer;
}

/** The machine's clock, with time that can be added: what comes due runs in its order. */
export class TestClock implements Clock {
  #addedMs = 0;
  #wallAddedMs = 0;
  readonly #timers = new Set<Timer>();
  #stoppedMs: number | undefined;

  monotonicMs(): number {
    return (this.#stoppedMs ?? systemClock.monotonicMs()) + this.#addedMs;
  }

  /** From now on only what `advance` adds counts, however slow the machine is. */
  stop(): void {
    this.#stoppedMs ??= systemClock.monotonicMs();
  }

  wallMs(): number {
    return Math.floor(systemClock.wallMs() + this.#addedMs + this.#wallAddedMs);
  }

  soon(callback: () => void): void {
    systemClock.soon(callback);
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    // What is far away is left to `advance`: no timer of the platform may be that long.
    const cancel = systemClock.after(Math.min(delayMs, 2 ** 31 - 1), () => this.#run(timer));
    const timer: Timer = { dueMs: this.monotonicMs() + delayMs, callback, cancel };
    this.#timers.add(timer);
    return () => this.#forget(timer);
  }

  /** Time passes, on both clocks. */
  advance(ms: number): void {
    const endMs = this.monotonicMs() + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ dueMs }) => dueMs <= endMs);
      const first = due.sort((a, b) => a.dueMs - b.dueMs)[0];
      if (first === undefined) break;
      this.#addedMs += Math.max(0, first.dueMs - this.monotonicMs());
      this.#run(first);
    }
    this.#addedMs += Math.max(0, endMs - this.monotonicMs());
  }

  /** Somebody sets the machine's clock. */
  jumpWall(ms: number): void {
    this.#wallAddedMs += ms;
  }

  #run(timer: Timer): void {
    this.#forget(timer);
    timer.callback();
  }

  #forget(timer: Timer): void {
    timer.cancel();
    this.#timers.delete(timer);
  }
}

export interface TestNodeOptions {
  readonly settings?: Partial<Settings>;
  readonly log?: Logger;
  readonly files?: FilePort;
  readonly opener?: BatchOpener;
}

/** A node that lives as long as the test, and may be started again on its data. */
export class TestNode {
  readonly clock = new TestClock();
  readonly #options: TestNodeOptions;
  readonly #folder: string;
  readonly #clients = new Set<TestClient>();
  readonly #fatal: unknown[] = [];
  #running: RunningNode | undefined;
  #seed = 1;

  constructor(folder: string, options: TestNodeOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  get address(): HostPort {
    return this.#node.address;
  }

  /** Of the admin endpoint, where the settings ask for one. */
  get adminAddress(): HostPort {
    return this.#node.adminAddress!;
  }

  get tenants(): Tenants {
    return this.#node.tenants;
  }

  get broker(): Broker {
    return this.#node.broker;
  }

  get #node(): RunningNode {
    assert.ok(this.#running !== undefined, 'the node is running');
    return this.#running;
  }

  async start(): Promise<void> {
    this.#running = await startNode({
      settings: withDefaults({ ...quickSettings, ...this.#options.settings, data: this.#folder }),
      log: this.#options.log ?? silentLogger,
      clock: this.clock,
      random: seededRandom(this.#seed++),
      files: this.#options.files ?? nodeFiles,
      directoryId: 'test',
      ...(this.#options.opener !== undefined && { opener: this.#options.opener }),
      onSnapshotFetched: () => assert.fail('a node on its own fetches nothing'),
      onFatal: (error) => this.#fatal.push(error),
    });
  }

  /** Stops the node and its clients. Fails if the node met an error that it could not handle. */
  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    this.#clients.clear();
    await this.#running?.stop();
    this.#running = undefined;
    assert.deepEqual(this.#fatal, [], 'the node met no error that ends it');
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Makes a topic without asking over the wire. */
  async createTopic(
    name: string,
    partitionCount = 1,
    configs: Readonly<Record<string, string>> = {},
  ): Promise<Topic> {
    const { topics } = this.broker;
    await topics.create({ name, partitionCount, configs: new Map(Object.entries(configs)) });
    return topics.byName(name)!;
  }

  async connect(clientId = 'test', at: HostPort = this.address): Promise<TestClient> {
    const client = await TestClient.connect(at, clientId);
    this.#clients.add(client);
    return client;
  }
}

export async function startTestNode(
  t: TestContext,
  options: TestNodeOptions = {},
): Promise<TestNode> {
  const folder = await mkdtemp(join(tmpdir(), 'keylane-test-'));
  const node = new TestNode(folder, options);
  t.after(async () => {
    try {
      await node.stop();
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
  await node.start();
  return node;
}

/** Whoever can send a request and gets its answer. */
export interface Asker {
  ask<Q extends ApiTable, R extends ApiTable>(
    request: Q,
    response: R,
    version: number,
    value: Input<Q>,
  ): Promise<Output<R>>;
}

interface Waiting {
  readonly resolve: (frame: Buffer) => void;
  readonly reject: (error: Error) => void;
}

/** One connection. Requests may be sent without waiting; answers find their request. */
export class TestClient implements Asker {
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #clientId: string | null;
  readonly #reader = new FrameReader();
  readonly #waiting = new Map<number, Waiting>();
  #isClosed = false;
  #nextCorrelationId = 1;

  static async connect(address: HostPort, clientId: string | null = 'test'): Promise<TestClient> {
    const socket = connect({ host: address.host, port: address.port, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new TestClient(socket, clientId);
  }

  constructor(socket: Socket, clientId: string | null) {
    this.#socket = socket;
    this.#clientId = clientId;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#isClosed = true;
        for (const { reject } of this.#waiting.values()) reject(new Error('connection closed'));
        this.#waiting.clear();
        resolve();
      });
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends a request and waits for its answer, of which no byte may be left over. */
  async ask<Q extends ApiTable, R extends ApiTable>(
    request: Q,
    response: R,
    version: number,
    value: Input<Q>,
  ): Promise<Output<R>> {
    const frame = await this.#answerTo(this.send(request, version, value));
    return decodeAnswer(response, version, frame);
  }

  /** Sends a request to which no answer is due or wanted. */
  send<Q extends ApiTable>(request: Q, version: number, value: Input<Q>): number {
    const correlationId = this.#nextCorrelationId++;
    const pieces = encodeRequest(request, version, correlationId, this.#clientId, value);
    this.#socket.write(Buffer.concat(pieces));
    return correlationId;
  }

  sendBytes(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** Sends bytes that hold a request with this correlation id; answers the frame that comes. */
  askBytes(correlationId: number, bytes: Uint8Array): Promise<Buffer> {
    this.sendBytes(bytes);
    return this.#answerTo(correlationId);
  }

  #answerTo(correlationId: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) reject(new Error('connection closed'));
      else this.#waiting.set(correlationId, { resolve, reject });
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    this.#reader.feed(chunk);
    while (this.#reader.frameBytes !== frameBytesUnknown) {
      const frame = this.#reader.next();
      if (frame === null) return;
      const correlationId = frame.readInt32BE(0);
      const waiting = this.#waiting.get(correlationId);
      this.#waiting.delete(correlationId);
      waiting?.resolve(frame);
    }
  }
}

/** The frame is without its size; no byte of it may be left over. */
export function decodeAnswer<R extends ApiTable>(
  response: R,
  version: number,
  frame: Buffer,
): Output<R> {
  const reader = new Reader(frame, 4, frame.length);
  if (responseHeaderVersion(response.apiKey, version) === 1) reader.skipTags();
  return decode(response, version, frame, reader.position, frame.length);
}

/** Resolves when `condition` holds; looks again after each round of the event loop. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
