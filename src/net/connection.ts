/**
 * One client connection: reads frames, hands them to its session in order, writes the answers in
 * order, and stops reading when a bound is reached. It knows nothing of what the frames say, and
 * of the socket only what a TCP and a TLS socket have in common.
 */
import type { Duplex } from 'node:stream';
import { AnswerQueue, type AnswerQueueOwner, type Reply } from './answer-queue.ts';
import { type BudgetWaiter, type ByteBudget, readBytesMax } from './byte-budget.ts';
import { FrameReader, frameBytesUnknown } from './frame-reader.ts';
import type { CloseReason, NetCounters, NetLimits } from './limits.ts';
import { plainAddress } from './listeners.ts';
import type { TurnEnd, TurnTaker } from './turn-end.ts';

/** What a connection needs of its socket: net.Socket and tls.TLSSocket both fit. */
export interface Transport extends Duplex {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

/** What answers the requests of one connection, and holds what is known about its client. */
export interface Session {
  /**
   * Called in order of arrival, never re-entrantly. The frame is without its size field, and its
   * memory is the session's. To reject it as malformed, throw what `isMalformed` recognizes.
   */
  onFrame(frame: Buffer, reply: Reply): void;
  /** The connection is gone; answers that are still owed need not be given. */
  onClose?(): void;
}

/** What all connections of a server share. */
export interface Shared {
  readonly limits: NetLimits;
  readonly counters: NetCounters;
  readonly budget: ByteBudget;
  readonly turnEnd: TurnEnd;
  /** Milliseconds of running time, coarse: read at each scan only. */
  nowMs: number;
  isMalformed(error: unknown): boolean;
  onFatal(error: unknown): void;
  onClosed(connection: Connection): void;
}

/** After the last answer, how long the client may take to close its side before it is cut off. */
const lingerMsMax = 5000;

export class Connection implements AnswerQueueOwner, BudgetWaiter, TurnTaker {
  readonly id: number;
  /** The client's address, IPv4 in its plain form; '' if it was gone already. */
  readonly remoteAddress: string;
  /** Frames shorter than this close the connection. Raw SASL tokens have no Kafka header. */
  frameBytesMin: number;
  readonly #transport: Transport;
  readonly #shared: Shared;
  #reader = new FrameReader();
  readonly #answers: AnswerQueue;
  #session: Session | null = null;
  /** Bytes that count in the budget: `#inFlightBytes` and those read but not yet dispatched. */
  #heldBytes = 0;
  #inFlightBytes = 0;
  #blocked = false;
  /** The budget called: for the rest of the turn it is asked as one that has waited. */
  #woken = false;
  #turnWanted = false;
  #closeReason: CloseReason | null = null;
  /** Once set, no frame is dispatched any more and the close follows the last answer. */
  #endReason: CloseReason | null = null;
  #ended = false;
  /** When something was last received, or the end began. */
  #activeMs: number;
  /** When the stream was given the bytes that it still holds. */
  #writeMs = 0;
  /** When the first byte of the unfinished frame came. */
  #frameStartMs = 0;

  constructor(id: number, remoteAddress: string, transport: Transport, shared: Shared) {
    this.id = id;
    this.remoteAddress = remoteAddress;
    this.frameBytesMin = shared.limits.frameBytesMin;
    this.#transport = transport;
    this.#shared = shared;
    this.#answers = new AnswerQueue(transport, this);
    this.#activeMs = shared.nowMs;
  }

  /** The address and port that the client connected to, '' and 0 once the socket is gone. */
  get localAddress(): string {
    return plainAddress(this.#transport.localAddress ?? '');
  }

  get localPort(): number {
    return this.#transport.localPort ?? 0;
  }

  get remotePort(): number {
    return this.#transport.remotePort ?? 0;
  }

  /** Bytes of unanswered requests and unwritten answers. */
  get inFlightBytes(): number {
    return this.#inFlightBytes;
  }

  get inFlightCount(): number {
    return this.#answers.count;
  }

  get busy(): boolean {
    return this.#answers.count > 0;
  }

  get closing(): boolean {
    return this.#closeReason !== null || this.#endReason !== null;
  }

  /** Starts reading. */
  open(session: Session): void {
    this.#session = session;
    const transport = this.#transport;
    // The chunk may be in a buffer that the next read of any socket fills anew.
    transport.on('data', (chunk: Buffer) => this.#onData(chunk));
    transport.on('end', () => this.close(this.#endReason ?? 'client'));
    transport.on('error', () => this.close('error'));
    transport.on('close', () => this.#onTransportClosed());
    transport.resume();
  }

  /** Closes at once; answers that are not written are lost. */
  close(reason: CloseReason): void {
    if (this.#closeReason !== null) return;
    this.#closeReason = reason;
    this.#dropUnread();
    this.#transport.destroy();
  }

  /** Takes no more requests, and closes once all requests taken so far are answered. */
  closeAfterAnswers(reason: CloseReason): void {
    if (this.closing) return;
    this.#endReason = reason;
    this.#dropUnread();
    this.#transport.pause();
    this.#wantTurnEnd();
  }

  /** Closes the connection if it has stalled; called by the server's one timer. */
  scan(nowMs: number): void {
    const { limits, budget } = this.#shared;
    const quietMs = nowMs - this.#activeMs;
    if (this.#ended) {
      if (quietMs >= lingerMsMax) this.close(this.#endReason ?? 'shutdown');
    } else if (this.#answers.writing && nowMs - this.#writeMs >= limits.writeStallMsMax) {
      this.close('write-stalled');
    } else if (budget.exhausted && budget.waitingCount > 0 && this.#isLateFrame(nowMs)) {
      this.close('assembly-stalled');
    } else if (!this.busy && !this.#blocked && quietMs >= limits.idleMsMax) {
      this.close('idle');
    }
  }

  onInFlightChange(delta: number): void {
    this.#inFlightBytes += delta;
    // The bytes of a request are held from their arrival on; see #dispatch.
    this.#hold(delta);
    if (!this.busy) this.#shared.budget.onAnswered(this);
    this.#wantTurnEnd();
  }

  onWriting(bytes: number): void {
    this.#shared.counters.bytesOut += bytes;
    this.#writeMs = this.#shared.nowMs;
    this.#activeMs = this.#shared.nowMs;
  }

  onTurnEnd(): void {
    this.#turnWanted = false;
    if (this.#closeReason !== null) return;
    this.#answers.flush();
    if (this.#endReason !== null) this.#endIfAnswered();
    else if (this.#blocked) this.#readOn();
    this.#woken = false;
  }

  wake(): void {
    this.#woken = true;
    this.#wantTurnEnd();
  }

  #onData(chunk: Buffer): void {
    const { counters, nowMs } = this.#shared;
    counters.bytesIn += chunk.length;
    if (this.closing) return;
    this.#activeMs = nowMs;
    if (!this.#reader.midFrame) this.#frameStartMs = nowMs;
    this.#hold(chunk.length);
    this.#reader.feed(chunk);
    this.#readOn();
  }

  /** Dispatches what was read as far as the bounds allow, and sees to it that reading goes on. */
  #readOn(): void {
    let size = 0;
    while (!this.closing) {
      const reader = this.#reader;
      size = reader.frameBytes;
      if (size !== frameBytesUnknown && !this.#isSizeLegal(size)) {
        this.close('frame-size');
        return;
      }
      if (!this.#mayRead(size === frameBytesUnknown ? 0 : size)) {
        this.#block();
        return;
      }
      const frame = reader.next();
      if (frame === null) break;
      this.#dispatch(frame);
    }
    if (this.#blocked && !this.closing) this.#unblock(size);
  }

  #isSizeLegal(size: number): boolean {
    return size >= this.frameBytesMin && size <= this.#shared.limits.frameBytesMax;
  }

  #mayRead(frameBytes: number): boolean {
    const { limits, budget } = this.#shared;
    if (!this.busy) return frameBytes <= readBytesMax || budget.admits(this, this.#woken);
    if (this.#answers.count >= limits.requestsInFlightMax) return false;
    if (this.#inFlightBytes + frameBytes > limits.connectionBytesInFlightMax) return false;
    return budget.admits(this, this.#woken);
  }

  #block(): void {
    this.#reader.keepRest();
    // The budget hears of the waiter at the end of the turn at the latest.
    this.#shared.turnEnd.schedule();
    if (this.#blocked) return;
    this.#blocked = true;
    this.#shared.counters.readPauses += 1;
    this.#transport.pause();
  }

  #unblock(frameBytes: number): void {
    const { budget, turnEnd } = this.#shared;
    this.#blocked = false;
    // Only who is in the middle of a large frame may keep the place of the elder.
    if (frameBytes <= readBytesMax) {
      budget.leave(this);
      turnEnd.schedule();
    }
    this.#transport.resume();
  }

  #dispatch(frame: Buffer): void {
    const { budget, counters, nowMs } = this.#shared;
    const bytes = frame.length + 4;
    // What was held as read is from now on held as in flight.
    this.#hold(-bytes);
    const reply = this.#answers.push(bytes);
    budget.onDispatched(this, bytes);
    counters.framesIn += 1;
    this.#frameStartMs = nowMs;
    try {
      this.#session?.onFrame(frame, reply);
    } catch (error) {
      if (this.#shared.isMalformed(error)) {
        this.close('malformed');
        return;
      }
      this.close('fatal');
      this.#shared.onFatal(error);
    }
  }

  #hold(delta: number): void {
    this.#heldBytes += delta;
    this.#shared.budget.add(delta);
  }

  /** Gives up what was read and not dispatched: nothing will be dispatched any more. */
  #dropUnread(): void {
    this.#reader = new FrameReader();
    this.#hold(this.#inFlightBytes - this.#heldBytes);
    this.#shared.budget.forget(this);
    this.#shared.turnEnd.schedule();
  }

  #wantTurnEnd(): void {
    if (this.#turnWanted) return;
    this.#turnWanted = true;
    this.#shared.turnEnd.add(this);
  }

  /** Sends FIN after the last answer, then reads and drops input: unread input would reset it. */
  #endIfAnswered(): void {
    if (this.busy || this.#ended) return;
    this.#ended = true;
    this.#activeMs = this.#shared.nowMs;
    this.#transport.end();
    this.#transport.resume();
  }

  #isLateFrame(nowMs: number): boolean {
    const { frameAssemblyMsMax } = this.#shared.limits;
    return this.#reader.midFrame && nowMs - this.#frameStartMs >= frameAssemblyMsMax;
  }

  #onTransportClosed(): void {
    this.#closeReason ??= 'client';
    const { counters, onClosed } = this.#shared;
    counters.connectionsClosed[this.#closeReason] += 1;
    this.#answers.kill();
    this.#dropUnread();
    this.#session?.onClose?.();
    this.#session = null;
    onClosed(this);
  }
}
