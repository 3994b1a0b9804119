/**
 * The network layer alone: `node dist/bench/micro/net.js [scenario ...]`.
 *
 * The server runs in this process and its clients in a child, so that `cpu` is the server's own.
 * Frames are kept until 64 MiB of younger ones have come, as a broker keeps recent batches; answers
 * are given in the turn after, as they are after a group commit. `idle` needs `ulimit -n` above
 * 10,200, and `node --expose-gc` for exact figures.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { appendFileSync, mkdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { arch, cpus, loadavg, platform } from 'node:os';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/core/clock.ts';
import type { Reply } from '../../src/net/answer-queue.ts';
import type { Session } from '../../src/net/connection.ts';
import { NetServer } from '../../src/net/server.ts';

interface Scenario {
  readonly connections: number;
  readonly inFlight: number;
  readonly requestBytes: number;
  readonly answerBytes: number;
  readonly requests: number;
}

const scenarios: Readonly<Record<string, Scenario>> = {
  'produce-16k': scenario(8, 5, 16 * 1024, 60, 160_000),
  'produce-200': scenario(16, 8, 200, 60, 800_000),
  'produce-1m': scenario(4, 2, 1024 * 1024, 60, 3000),
  'sync-1': scenario(1, 1, 200, 60, 60_000),
  'fetch-1m': scenario(4, 1, 100, 1024 * 1024, 4000),
};

function scenario(
  connections: number,
  inFlight: number,
  requestBytes: number,
  answerBytes: number,
  requests: number,
): Scenario {
  return { connections, inFlight, requestBytes, answerBytes, requests };
}

const idleConnections = 10_000;
const keptBytesMax = 64 * 1024 * 1024;
const pieceBytes = 64 * 1024;

/** Answers all requests of a turn together in the next one. */
class DelayedSession implements Session {
  static readonly kept: Buffer[] = [];
  static keptBytes = 0;
  static keptFrom = 0;
  static waiting: { reply: Reply; pieces: Uint8Array[] }[] = [];
  readonly #pieces: Uint8Array[];

  constructor(pieces: Uint8Array[]) {
    this.#pieces = pieces;
  }

  onFrame(frame: Buffer, reply: Reply): void {
    DelayedSession.keep(frame);
    if (DelayedSession.waiting.length === 0) setImmediate(DelayedSession.answerAll);
    DelayedSession.waiting.push({ reply, pieces: this.#pieces });
  }

  static keep(frame: Buffer): void {
    const { kept } = DelayedSession;
    kept.push(frame);
    DelayedSession.keptBytes += frame.length;
    while (DelayedSession.keptBytes > keptBytesMax) {
      DelayedSession.keptBytes -= kept[DelayedSession.keptFrom]!.length;
      kept[DelayedSession.keptFrom] = Buffer.alloc(0);
      DelayedSession.keptFrom += 1;
    }
    if (DelayedSession.keptFrom > 100_000) {
      kept.splice(0, DelayedSession.keptFrom);
      DelayedSession.keptFrom = 0;
    }
  }

  static answerAll(this: void): void {
    const waiting = DelayedSession.waiting;
    DelayedSession.waiting = [];
    for (const { reply, pieces } of waiting) reply.send(pieces);
  }
}

/** A framed answer: a header piece and stored pieces, made once. */
function answerPieces(answerBytes: number): Uint8Array[] {
  const header = Buffer.alloc(Math.min(answerBytes, 60));
  header.writeInt32BE(answerBytes - 4);
  const pieces: Uint8Array[] = [header];
  for (let left = answerBytes - header.length; left > 0; left -= pieceBytes) {
    pieces.push(Buffer.alloc(Math.min(left, pieceBytes)));
  }
  return pieces;
}

function startServer(answerBytes: number): NetServer {
  return new NetServer({
    clock: systemClock,
    openSession: () => new DelayedSession(answerPieces(answerBytes)),
    isMalformed: () => false,
    onFatal: (error) => {
      throw error;
    },
  });
}

interface Measured {
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

async function runScenario(name: string, { connections, inFlight, ...rest }: Scenario) {
  const server = startServer(rest.answerBytes);
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  const before = process.cpuUsage();
  const child = startChild();
  const load = { port, connections, inFlight, ...rest };
  const measured = (await ask(child, { load })) as Measured;
  const used = process.cpuUsage(before);
  const cpuUs = used.user + used.system;
  child.disconnect();
  await server.close();
  const mb = ((rest.requestBytes + rest.answerBytes) * rest.requests) / 1e6;
  report({
    name,
    connections,
    inFlight,
    ...rest,
    requestsPerSecond: Math.round(rest.requests / measured.seconds),
    mbPerSecond: Math.round(mb / measured.seconds),
    cpuUsPerRequest: round(cpuUs / rest.requests),
    p50Ms: round(measured.p50Ms),
    p99Ms: round(measured.p99Ms),
    rssMb: Math.round(process.memoryUsage.rss() / 1e6),
    pauses: server.counters.readPauses,
  });
}

async function runIdle(): Promise<void> {
  const server = startServer(60);
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  const child = startChild();
  const grow = async (connections: number): Promise<NodeJS.MemoryUsage> => {
    const wanted = server.counters.connectionsOpen + connections;
    await ask(child, { idle: { port, connections } });
    while (server.counters.connectionsOpen < wanted) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    globalThis.gc?.();
    return process.memoryUsage();
  };
  const before = await grow(100);
  const after = await grow(idleConnections);
  const scans: number[] = [];
  for (let i = 0; i < 20; i++) scans.push(timeScan(server));
  report({
    name: 'idle',
    connections: server.counters.connectionsOpen,
    rssBytesPerConnection: Math.round((after.rss - before.rss) / idleConnections),
    heapBytesPerConnection: Math.round((after.heapUsed - before.heapUsed) / idleConnections),
    externalBytesPerConnection: Math.round((after.external - before.external) / idleConnections),
    scanMs: round(Math.min(...scans)),
  });
  child.disconnect();
  await server.close();
}

function timeScan(server: NetServer): number {
  const start = performance.now();
  server.scan();
  return performance.now() - start;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function report(fields: Readonly<Record<string, unknown>>): void {
  console.log(JSON.stringify(fields));
  const machine = {
    cpu: cpus()[0]?.model,
    cpus: cpus().length,
    os: `${platform()} ${arch()}`,
    node: process.version,
    load: loadavg()[0],
    at: new Date().toISOString(),
  };
  mkdirSync('bench/results', { recursive: true });
  appendFileSync('bench/results/net.jsonl', `${JSON.stringify({ ...fields, machine })}\n`);
}

function startChild(): ChildProcess {
  return fork(fileURLToPath(import.meta.url), ['client']);
}

function ask(child: ChildProcess, message: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('error', reject);
    child.send(message);
  });
}

interface Load extends Scenario {
  readonly port: number;
}

/** Keeps `inFlight` requests going on each connection until all are answered. */
async function generate(load: Load): Promise<Measured> {
  const sockets = await connectAll(load.port, load.connections);
  const frame = Buffer.alloc(4 + load.requestBytes);
  frame.writeInt32BE(load.requestBytes);
  const latencies = new Float64Array(load.requests);
  let sent = 0;
  let answered = 0;
  const start = performance.now();
  await new Promise<void>((resolve) => {
    for (const socket of sockets) {
      const sentAt: number[] = [];
      const send = (count: number): void => {
        const now = performance.now();
        socket.cork();
        for (let i = 0; i < count && sent < load.requests; i++) {
          sent += 1;
          sentAt.push(now);
          socket.write(frame);
        }
        socket.uncork();
      };
      let pending = 0;
      socket.on('data', (chunk: Buffer) => {
        pending += chunk.length;
        const count = Math.floor(pending / load.answerBytes);
        pending -= count * load.answerBytes;
        const now = performance.now();
        for (let i = 0; i < count; i++) latencies[answered++] = now - sentAt.shift()!;
        if (answered === load.requests) resolve();
        send(count);
      });
      send(load.inFlight);
    }
  });
  const seconds = (performance.now() - start) / 1000;
  for (const socket of sockets) socket.destroy();
  latencies.sort();
  const at = (part: number): number => latencies[Math.floor(load.requests * part)]!;
  return { seconds, p50Ms: at(0.5), p99Ms: at(0.99) };
}

async function connectAll(port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let i = 0; i < count; i++) {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    // At the end the server cuts idle ones off.
    socket.on('error', () => socket.destroy());
    sockets.push(socket);
  }
  return sockets;
}

function serveAsClient(): void {
  process.on('message', async (message: { load?: Load; idle?: Load }) => {
    if (message.load !== undefined) process.send?.(await generate(message.load));
    if (message.idle !== undefined) {
      await connectAll(message.idle.port, message.idle.connections);
      process.send?.('connected');
    }
  });
  process.on('disconnect', () => process.exit());
}

async function main(wanted: readonly string[]): Promise<void> {
  for (const [name, settings] of Object.entries(scenarios)) {
    if (wanted.length === 0 || wanted.includes(name)) await runScenario(name, settings);
  }
  if (wanted.length === 0 || wanted.includes('idle')) await runIdle();
}

if (process.argv[2] === 'client') serveAsClient();
else await main(process.argv.slice(2));
