/**
 * The listening side: accepts sockets within the limits, makes each a `Connection`, looks for
 * stalled ones with a single timer, and shuts down in order. The sockets come from a `net.Server`
 * that is given, so TLS differs only in the server that is passed in.
 */
import { createServer, type Server, type Socket } from 'node:net';
import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import { ByteBudget } from './byte-budget.ts';
import { Connection, type Session, type Shared, type Transport } from './connection.ts';
import { createNetCounters, defaultNetLimits, type NetCounters, type NetLimits } from './limits.ts';
import { type HostPort, plainAddress } from './listeners.ts';
import { readThroughSharedBuffer } from './shared-read.ts';
import { TurnEnd } from './turn-end.ts';

export interface NetServerOptions {
  readonly clock: Clock;
  readonly limits?: Partial<NetLimits>;
  readonly openSession: (connection: Connection) => Session;
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
  readonly #server: Server;
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
    this.#server = createServer({
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveDelayMs,
      pauseOnConnect: true,
    });
    // Such as no file descriptors left: this client is lost, the listener goes on.
    this.#server.on('error', () => {
      if (this.#server.listening) this.counters.acceptErrors += 1;
    });
    this.#server.on('connection', (socket: Socket) => {
      const ip = this.#admit(socket);
      if (ip !== null) this.#open(readThroughSharedBuffer(socket) ?? socket, ip);
    });
  }

  /** Bytes of requests and answers that are in memory now. */
  get inFlightBytes(): number {
    return this.#shared.budget.bytes;
  }

  /** Where the server listens, port filled in; null while it does not. */
  get address(): HostPort | null {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') return null;
    return { host: address.address, port: address.port };
  }

  /** Listens; host '' means all addresses, port 0 any free one. */
  listen(at: HostPort): Promise<HostPort> {
    const where = at.host === '' ? {} : { host: at.host };
    return new Promise((resolve, reject) => {
      const onError = (error: Error): void => {
        const message = `cannot listen on ${at.host}:${at.port}: ${error.message}`;
        reject(new BrokerError('LISTEN_FAILED', message, { ...at }, error));
      };
      this.#server.once('error', onError);
      this.#server.listen({ ...where, port: at.port, backlog: backlogMax }, () => {
        this.#server.off('error', onError);
        resolve(this.address ?? at);
      });
    });
  }

  /** Takes a connected stream in, or closes it at once if that would exceed a limit. */
  adopt(transport: Transport): void {
    const ip = this.#admit(transport);
    if (ip !== null) this.#open(transport, ip);
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

  #open(transport: Transport, ip: string): void {
    this.#lastId += 1;
    const connection = new Connection(this.#lastId, ip, transport, this.#shared);
    this.#connections.add(connection);
    this.counters.connectionsOpen += 1;
    if (this.#cancelScan === null) {
      this.#scannedMs = this.#options.clock.monotonicMs();
      this.#scheduleScan();
    }
    connection.open(this.#options.openSession(connection));
  }

  #stopListening(): void {
    if (this.#server.listening) this.#server.close();
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
