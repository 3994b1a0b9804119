import { ByteReader, ByteWriter } from '../core/bytes.ts';
import type { Entry } from '../log/format.ts';
import type { Message } from '../raft/messages.ts';
import type { PeerPort } from '../replica/peer-port.ts';
import { defaultTenant } from '../state/tenants.ts';
import { nodeIdOf } from './formation.ts';
import { RequestKind } from './operator.ts';
import { encodeMessage, tenantFrameKind } from './peer-codec.ts';

/** The connections to the other nodes, which all groups share. */
export interface NodeLinks {
  /** To the member, if it is there. */
  sendTo(member: string, frame: readonly Uint8Array[]): void;
  /** Undefined if the node cannot be reached, or goes away before it answers. */
  askNode(nodeId: number, request: readonly Uint8Array[]): Promise<Buffer | undefined>;
}

/**
 * The way of one tenant's Raft group to its other members. What goes out says of which tenant it
 * is, but for the default one: older versions know no other.
 */
export class GroupLink implements PeerPort {
  readonly #links: NodeLinks;
  readonly #frameHead: readonly Uint8Array[];
  readonly #requestHead: readonly Uint8Array[];

  constructor(links: NodeLinks, tenant: number) {
    this.#links = links;
    this.#frameHead = head(tenantFrameKind, tenant);
    this.#requestHead = head(RequestKind.tenant, tenant);
  }

  send(message: Message, entries: readonly Entry[]): void {
    this.#links.sendTo(message.to, [...this.#frameHead, ...encodeMessage(message, entries)]);
  }

  ask(member: string, request: Buffer): Promise<Buffer | undefined> {
    return this.askNode(nodeIdOf(member), [Buffer.of(RequestKind.snapshot), request]);
  }

  askNode(nodeId: number, request: readonly Uint8Array[]): Promise<Buffer | undefined> {
    return this.#links.askNode(nodeId, [...this.#requestHead, ...request]);
  }
}

function head(kind: number, tenant: number): readonly Uint8Array[] {
  return tenant === defaultTenant ? [] : [new ByteWriter(8).u8(kind).uvarint(tenant).finish()];
}

/** What a frame or a request of this kind says, and for which tenant. */
export function forTenant(
  bytes: Buffer,
  kind: number,
): { readonly tenant: number; readonly rest: Buffer } {
  if (bytes[0] !== kind) return { tenant: defaultTenant, rest: bytes };
  const reader = new ByteReader(bytes.subarray(1));
  const tenant = reader.uvarint();
  return { tenant, rest: bytes.subarray(bytes.length - reader.remaining) };
}
