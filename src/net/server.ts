/**
 * The listening side: accepts sockets within the limits, on one port or on several, makes each a
 * `Connection`, looks for stalled ones with a single timer, and shuts down in order. Limits are
 * those of all ports together. Streams that others have accepted, such as TLS, are adopted.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { assert } from '../core/assert.ts';
import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import { ByteBudget } from './byte-budget.ts';
import { Connection, type Session, type Shared, type Transport } from './connection.ts';
import { createNetCounters, defaultNetLimits, type NetCounters, type NetLimits } from './limits.ts';
import { type HostPort, plainAddress } from './listeners.ts';
import { readThroughSharedBuffer } from './shared-read.ts';
import { TurnEnd } from './turn-end.ts';

export type OpenSession = (connection: Connection) => Session;

export interface NetServerOptions {
  readonly clock: Clock;
  readonly limits?: Partial<NetLimits>;
  /** Of streams that are adopted, and of ports that have none of their own. */
  readonly openSession?: OpenSession;
  /** Whether an error that a session threw means a malformed frame: it closes the connection. */
  readonly isMalformed: (error: unknown) => boolean;
  /** Any other error that a session threw: the process can no longer trust its state. */
  readonly onFatal: (error: unknown) => void;
}

/** Keep-alive probes start after this much silence, to find peers that died without a word. */
const keepAliveDelayMs = 60_000;
/** Connections that the kernel may keep ready for accept; it caps this at its own limit. */
const backlogMax = 1024;
const scanMsMax = 5000;

export class NetServer {
  readonly counters: NetCounters = createNetCounters();
  readonly limits: NetLimits;
  readonly #options: NetServerOptions;
  readonly #shared: Shared;
  /** One for each port. */
  readonly #listeners = new Set<Server>();
  readonly #connections = new Set<Connection>();
  readonly #connectionsByIp = new Map<string, number>();
  readonly #scanMs: number;
  #scannedMs = 0;
  #cancelScan: (() => void) | null = null;
  #lastId = 0;
  #onEmpty: (() => void) | null = null;

  constructor(options: NetServerOptions) {
    this.#options = options;
    this.limits = { ...defaultNetLimits, ...options.limits };
    const { idleMsMax, writeStallMsMax, frameAssemblyMsMax } = this.limits;
    this.#scanMs = Math.min(scanMsMax, idleMsMax / 8, writeStallMsMax / 8, frameAssemblyMsMax / 8);
    const budget = new ByteBudget(this.limits.totalBytesInFlightMax, this.limits.frameBytesMax);
    this.#shared = {
      limits: this.limits,
      counters: this.counters,
      budget,
      turnEnd: new TurnEnd(() => budget.wakeWaiters()),
      nowMs: 0,
      isMalformed: options.isMalformed,
      onFatal: options.onFatal,
      onClosed: (connection) => this.#onClosed(connection),
    };
  }

  /** Bytes of requests and answers that are in memory now. */
  get inFlightBytes(): number {
    return this.#shared.budget.bytes;
  }

  /** Where the server listens first of all, port filled in; null while it does not. */
  get address(): HostPort | null {
    for (const listener of this.#listeners) return addressOf(listener);
    return null;
  }

  /**
   * Listens, beside where it does already; host '' means all addresses, port 0 any free one.
   * `openSession` is for those who come by this port.
   */
  listen(at: HostPort, openSession = this.#usualSession()): Promise<HostPort> {
    const where = at.host === '' ? {} : { host: at.host };
    const listener = this.#newListener(openSession);
    return new Promise((resolve, reject) => {
      const onError = (error: Error): void => {
        const message = `cannot listen on ${at.host}:${at.port}: ${error.message}`;
        reject(new BrokerError('LISTEN_FAILED', message, { ...at }, error));
      };
      listener.once('error', onError);
      listener.listen({ ...where, port: at.port, backlog: backlogMax }, () => {
        listener.off('error', onError);
        this.#listeners.add(listener);
        resolve(addressOf(listener) ?? at);
      });
    });
  }

  /** Listens on this port no more, and closes the connections that came by it. */
  closePort(port: number): void {
    for (const listener of this.#listeners) {
      if (addressOf(listener)?.port !== port) continue;
      listener.close();
      this.#listeners.delete(listener);
    }
    for (const connection of this.#connections) {
      if (connection.localPort === port) connection.close('shutdown');
    }
  }

  /** Takes a connected stream in, or closes it at once if that would exceed a limit. */
  adopt(transport: Transport): void {
    const ip = this.#admit(transport);
    if (ip !== null) this.#open(transport, ip, this.#usualSession());
  }

  /**
   * Stops accepting and reading, answers what is in flight, and closes. What is not answered
   * after `deadlineMs` is given up.
   */
  shutdown(deadlineMs: number): Promise<void> {
    this.#stopListening();
    for (const connection of this.#connections) connection.closeAfterAnswers('shutdown');
    const cancel = this.#options.clock.after(deadlineMs, () => this.#closeAll());
    return this.#whenEmpty().finally(cancel);
  }

  /** Stops accepting and closes all connections at once. */
  close(): Promise<void> {
    this.#stopListening();
    this.#closeAll();
    return this.#whenEmpty();
  }

  /** The client's address if it may come in; else null, and the stream is closed. */
  #admit(transport: Transport): string | null {
    this.counters.connectionsAccepted += 1;
    const ip = plainAddress(transport.remoteAddress ?? '');
    const ofIp = this.#connectionsByIp.get(ip) ?? 0;
    const { connectionsMax, connectionsPerIpMax } = this.limits;
    if (this.#connections.size < connectionsMax && ofIp < connectionsPerIpMax) {
      this.#connectionsByIp.set(ip, ofIp + 1);
      return ip;
    }
    this.counters.connectionsRefused += 1;
    transport.on('error', ignoreError);
    transport.destroy();
    return null;
  }

  #open(transport: Transport, ip: string, openSession: OpenSession): void {
    this.#lastId += 1;
    const connection = new Connection(this.#lastId, ip, transport, this.#shared);
    this.#connections.add(connection);
    this.counters.connectionsOpen += 1;
    if (this.#cancelScan === null) {
      this.#scannedMs = this.#options.clock.monotonicMs();
      this.#scheduleScan();
    }
    connection.open(openSession(connection));
  }

  #usualSession(): OpenSession {
    const { openSession } = this.#options;
    assert(openSession !== undefined, 'somebody is to serve who comes');
    return openSession;
  }

  #newListener(openSession: OpenSession): Server {
    const listener = createServer({
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveDelayMs,
      pauseOnConnect: true,
    });
    // Such as no file descriptors left: this client is lost, the listener goes on.
    listener.on('error', () => {
      if (listener.listening) this.counters.acceptErrors += 1;
    });
    listener.on('connection', (socket: Socket) => {
      const ip = this.#admit(socket);
      if (ip === null) return;
      this.#open(readThroughSharedBuffer(socket) ?? socket, ip, openSession);
    });
    return listener;
  }

  #stopListening(): void {
    for (const listener of this.#listeners) listener.close();
    this.#listeners.clear();
  }

  #closeAll(): void {
    for (const connection of this.#connections) connection.close('shutdown');
  }

  #whenEmpty(): Promise<void> {
    return new Promise((resolve) => {
      const before = this.#onEmpty;
      this.#onEmpty = () => {
        before?.();
        resolve();
      };
      this.#checkEmpty();
    });
  }

  #checkEmpty(): void {
    if (this.#connections.size > 0) return;
    this.#cancelScan?.();
    this.#cancelScan = null;
    const onEmpty = this.#onEmpty;
    this.#onEmpty = null;
    onEmpty?.();
  }

  #onClosed(connection: Connection): void {
    this.#connections.delete(connection);
    this.counters.connectionsOpen -= 1;
    const ip = connection.remoteAddress;
    const ofIp = (this.#connectionsByIp.get(ip) ?? 1) - 1;
    if (ofIp === 0) this.#connectionsByIp.delete(ip);
    else this.#connectionsByIp.set(ip, ofIp);
    this.#checkEmpty();
  }

  /** Scans go on while there are connections. */
  #scheduleScan(): void {
    this.#cancelScan = this.#options.clock.after(this.#scanMs, () => {
      this.scan();
      this.#scheduleScan();
    });
  }

  /**
   * Looks for stalled connections; called by the server's own timer.
   * Time in which the process did not run (a stopped process, a sleeping machine) does not count:
   * the data that came meanwhile has not been looked at yet.
   */
  scan(): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#shared.nowMs += Math.min(nowMs - this.#scannedMs, 2 * this.#scanMs);
    this.#scannedMs = nowMs;
    for (const connection of this.#connections) connection.scan(this.#shared.nowMs);
    // Those woken last may have sent nothing since; then it is for others to use the room.
    this.#shared.turnEnd.schedule();
  }
}

/** A refused socket may fail while it closes; nobody is interested. */
function ignoreError(): void {
  // Without a listener the process would end.
}

function addressOf(listener: Server): HostPort | null {
  const address = listener.address();
  if (address === null || typeof address === 'string') return null;
  return { host: address.address, port: address.port };
}
