import type { HostPort } from './listeners.ts';
import { PeerChannel, type PeerChannelOptions } from './peer-channel.ts';
import { connectThroughSharedBuffer } from './shared-read.ts';

const retryMs = 100;
const retryMsMax = 1000;

export interface PeerLinkOptions
  extends Omit<PeerChannelOptions, 'isDialer' | 'onClosed' | 'onReady'> {
  /** Where the other node is, at this moment. */
  readonly address: () => HostPort;
  readonly onUp: () => void;
  /** It was connected and is no longer. */
  readonly onDown: () => void;
  /** The other node does not want this one, or is none. */
  readonly onRefused: (reason: string) => void;
}

/** The way to one other node, made anew whenever it breaks. */
export class PeerLink {
  readonly #options: PeerLinkOptions;
  #channel: PeerChannel | undefined;
  #cancelRetry: (() => void) | undefined;
  #retryMs = retryMs;
  #isStopped = false;

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#dial();
  }

  get isUp(): boolean {
    return this.#channel?.isReady === true;
  }

  /** False if it cannot be sent now; then it is lost. */
  send(pieces: readonly Uint8Array[]): boolean {
    return this.#channel?.send(pieces) === true;
  }

  /** The other node is there again: it has just called itself. */
  retryNow(): void {
    if (this.#channel !== undefined || this.#isStopped) return;
    this.#cancelRetry?.();
    this.#dial();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelRetry?.();
    this.#channel?.close('this node stops');
  }

  #dial(): void {
    const { address, onUp } = this.#options;
    const channel: PeerChannel = new PeerChannel(connectThroughSharedBuffer(address()), {
      ...this.#options,
      isDialer: true,
      onReady: () => {
        this.#retryMs = retryMs;
        onUp();
      },
      onClosed: (reason) => this.#onClosed(channel, reason),
    });
    this.#channel = channel;
  }

  #onClosed(channel: PeerChannel, reason: string): void {
    const { clock, onDown, onRefused } = this.#options;
    this.#channel = undefined;
    if (channel.wasReady) onDown();
    else onRefused(reason);
    if (this.#isStopped) return;
    this.#cancelRetry = clock.after(this.#retryMs, () => this.#dial());
    this.#retryMs = Math.min(this.#retryMs * 2, retryMsMax);
  }
}
