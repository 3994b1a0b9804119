import type { Entry } from '../log/format.ts';
import type { Message } from '../raft/messages.ts';

/** The way to the other members of the group. What it is given may be lost, or come late. */
export interface PeerPort {
  /** `entries` are those of an append, and belong to the port from then on. */
  send(message: Message, entries: readonly Entry[]): void;
  /** A request for a snapshot; undefined if the other member does not answer. */
  ask(member: string, request: Buffer): Promise<Buffer | undefined>;
}
