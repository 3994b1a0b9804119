/** The bounds of the network layer, with their units and reasons, and what it counts. */

export interface NetLimits {
  /** A request is at least api key, version and correlation id; shorter frames are no requests. */
  readonly frameBytesMin: number;
  /** Kafka's `socket.request.max.bytes`. */
  readonly frameBytesMax: number;
  /** Requests of one connection that may be unanswered or unwritten at a time. */
  readonly requestsInFlightMax: number;
  /**
   * Bytes of unanswered requests and unwritten answers of one connection, above which it is not
   * read from. One request that is larger is let through alone.
   */
  readonly connectionBytesInFlightMax: number;
  /** The same over all connections, counting also frames that have not yet arrived whole. */
  readonly totalBytesInFlightMax: number;
  /** Kafka's `max.connections`. */
  readonly connectionsMax: number;
  /** Kafka's `max.connections.per.ip`. */
  readonly connectionsPerIpMax: number;
  /** Kafka's `connections.max.idle.ms`. */
  readonly idleMsMax: number;
  /** How long a client may take to accept one write, of at most 256 KiB if it is slow. */
  readonly writeStallMsMax: number;
  /**
   * How long a frame may take to arrive while others wait for memory. Clients give a request up
   * after 30 s (`request.timeout.ms`), so a frame that takes longer is of no use to anyone.
   */
  readonly frameAssemblyMsMax: number;
}

export const defaultNetLimits: NetLimits = {
  frameBytesMin: 8,
  frameBytesMax: 100 * 1024 * 1024,
  requestsInFlightMax: 256,
  connectionBytesInFlightMax: 16 * 1024 * 1024,
  totalBytesInFlightMax: 256 * 1024 * 1024,
  connectionsMax: Number.MAX_SAFE_INTEGER,
  connectionsPerIpMax: Number.MAX_SAFE_INTEGER,
  idleMsMax: 600_000,
  writeStallMsMax: 60_000,
  frameAssemblyMsMax: 30_000,
};

export const closeReasons = [
  /** The client closed its side. */
  'client',
  /** The socket failed: reset, broken pipe, keep-alive unanswered. */
  'error',
  /** The frame size was negative, too small or too large. */
  'frame-size',
  /** The session found a frame malformed. */
  'malformed',
  /** The session refused the client, for instance at authentication. */
  'denied',
  'idle',
  'write-stalled',
  'assembly-stalled',
  'shutdown',
  /** The session failed in a way that ends the process. */
  'fatal',
] as const;

export type CloseReason = (typeof closeReasons)[number];

/** Plain counters, written by the network layer only and read by whoever exports metrics. */
export interface NetCounters {
  connectionsOpen: number;
  connectionsAccepted: number;
  /** Closed right after accept, because of a limit on connections. */
  connectionsRefused: number;
  /** The system could not accept a connection, for instance for want of file descriptors. */
  acceptErrors: number;
  readonly connectionsClosed: Record<CloseReason, number>;
  framesIn: number;
  bytesIn: number;
  bytesOut: number;
  /** How often reading from a connection was stopped because of a bound. */
  readPauses: number;
}

export function createNetCounters(): NetCounters {
  const closed = Object.fromEntries(closeReasons.map((reason) => [reason, 0]));
  return {
    connectionsOpen: 0,
    connectionsAccepted: 0,
    connectionsRefused: 0,
    acceptErrors: 0,
    connectionsClosed: closed as Record<CloseReason, number>,
    framesIn: 0,
    bytesIn: 0,
    bytesOut: 0,
    readPauses: 0,
  };
}
