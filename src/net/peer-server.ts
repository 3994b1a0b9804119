import { createServer, type Server, type Socket } from 'node:net';
import { BytesError } from '../core/bytes.ts';
import { BrokerError } from '../core/errors.ts';
import type { HostPort } from './listeners.ts';
import { PeerChannel, type PeerChannelOptions } from './peer-channel.ts';
import { readThroughSharedBuffer } from './shared-read.ts';

/** More than there are nodes, so that strangers cannot take up everything. */
const channelsMax = 256;

export interface PeerServerOptions
  extends Omit<PeerChannelOptions, 'isDialer' | 'onHello' | 'onReady' | 'onFrame' | 'onClosed'> {
  /** Who it is; throws if it has no business here. Answers what to do with its frames. */
  readonly onPeer: (
    hello: Buffer,
    reply: (pieces: readonly Uint8Array[]) => void,
  ) => (frame: Buffer) => void;
  readonly onRefused: (reason: string) => void;
}

/** Where the other nodes of the cluster connect to. */
export class PeerServer {
  readonly #options: PeerServerOptions;
  readonly #server: Server;
  readonly #channels = new Set<PeerChannel>();

  constructor(options: PeerServerOptions) {
    this.#options = options;
    this.#server = createServer({ pauseOnConnect: true }, (socket) =>
      this.#open(readThroughSharedBuffer(socket) ?? socket),
    );
    this.#server.on('error', () => undefined);
  }

  listen({ host, port }: HostPort): Promise<HostPort> {
    return new Promise((resolve, reject) => {
      const onError = (error: Error): void => {
        const message = `cannot listen on ${host}:${port} for the cluster: ${error.message}`;
        reject(new BrokerError('LISTEN_FAILED', message, { host, port }, error));
      };
      this.#server.once('error', onError);
      this.#server.listen({ ...(host !== '' && { host }), port }, () => {
        this.#server.off('error', onError);
        const address = this.#server.address();
        const actual = typeof address === 'object' && address !== null ? address.port : port;
        resolve({ host, port: actual });
      });
    });
  }

  /** Resolves when the address is free again. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const channel of this.#channels) channel.close('this node stops');
    });
  }

  #open(socket: Socket): void {
    if (this.#channels.size >= channelsMax) {
      socket.destroy();
      return;
    }
    const { onPeer, onRefused } = this.#options;
    let onFrame: (frame: Buffer) => void = () => undefined;
    const channel: PeerChannel = new PeerChannel(socket, {
      ...this.#options,
      isDialer: false,
      onHello: (hello) => {
        onFrame = onPeer(hello, (pieces) => void channel.send(pieces));
      },
      onReady: () => undefined,
      onFrame: (frame) => {
        try {
          onFrame(frame);
        } catch (error) {
          if (!isMalformed(error)) throw error;
          channel.close(error.message);
        }
      },
      onClosed: (reason) => {
        this.#channels.delete(channel);
        if (!channel.wasReady) onRefused(reason);
      },
    });
    this.#channels.add(channel);
  }
}

/** What it sent makes no sense: that costs it the connection. */
function isMalformed(error: unknown): error is Error {
  return error instanceof RangeError || error instanceof BytesError;
}
