import type { RequestContext } from './handler.ts';

/** What is known of one member. */
interface MemberTrace {
  readonly connections: Set<number>;
  /** It comes from before this broker started, and nothing was heard of it since. */
  isRestored: boolean;
}

/** The members of one group that were heard on one connection. */
interface Heard {
  readonly memberIds: Set<string>;
  newest: string;
}

/**
 * Which member of a group speaks on which connection, as far as requests name it: OffsetFetch below
 * version 9 and Fetch do not. A member may have several connections and, where a client library
 * shares them, a connection several members. Connections that closed are forgotten.
 */
export class MemberConnections {
  /** By connection, then by group. */
  readonly #heard = new Map<number, Map<string, Heard>>();
  /** By group, then by member. */
  readonly #members = new Map<string, Map<string, MemberTrace>>();

  /** From now on, until it closes, members may be heard on this connection. */
  open({ client, onClosed }: Pick<RequestContext, 'client' | 'onClosed'>): void {
    const { connectionId } = client;
    if (this.#heard.has(connectionId)) return;
    this.#heard.set(connectionId, new Map());
    onClosed(() => this.#close(connectionId));
  }

  /** A member was heard on a connection, which may have closed since. */
  note(connectionId: number, groupId: string, memberId: string): void {
    const groups = this.#heard.get(connectionId);
    if (groups === undefined) return;
    const heard = groups.get(groupId);
    if (heard === undefined) {
      groups.set(groupId, { memberIds: new Set([memberId]), newest: memberId });
    } else if (heard.newest === memberId) {
      return;
    } else {
      heard.memberIds.add(memberId);
      heard.newest = memberId;
    }
    const trace = this.#trace(groupId, memberId);
    trace.connections.add(connectionId);
    trace.isRestored = false;
  }

  /** A member that this broker knows from before it started: its connection may be on its way. */
  restore(groupId: string, memberId: string): void {
    this.#trace(groupId, memberId).isRestored = true;
  }

  /** It is no member any more. */
  forget(groupId: string, memberId: string): void {
    const trace = this.#members.get(groupId)?.get(memberId);
    if (trace === undefined) return;
    this.#drop(groupId, memberId);
    for (const connectionId of trace.connections) {
      const groups = this.#heard.get(connectionId)!;
      const heard = groups.get(groupId)!;
      heard.memberIds.delete(memberId);
      if (heard.memberIds.size === 0) groups.delete(groupId);
      else if (heard.newest === memberId) heard.newest = [...heard.memberIds].at(-1)!;
    }
  }

  /** The member of the group that was heard last on this connection. */
  memberOf(connectionId: number, groupId: string): string | undefined {
    return this.#heard.get(connectionId)?.get(groupId)?.newest;
  }

  /** True also for members that are known from before a restart and may not have come back yet. */
  hasOpenConnection(groupId: string, memberId: string): boolean {
    const trace = this.#members.get(groupId)?.get(memberId);
    return trace !== undefined && (trace.connections.size > 0 || trace.isRestored);
  }

  #trace(groupId: string, memberId: string): MemberTrace {
    let members = this.#members.get(groupId);
    if (members === undefined) {
      members = new Map();
      this.#members.set(groupId, members);
    }
    let trace = members.get(memberId);
    if (trace === undefined) {
      trace = { connections: new Set(), isRestored: false };
      members.set(memberId, trace);
    }
    return trace;
  }

  #close(connectionId: number): void {
    const groups = this.#heard.get(connectionId);
    this.#heard.delete(connectionId);
    for (const [groupId, { memberIds }] of groups ?? []) {
      for (const memberId of memberIds) {
        const trace = this.#members.get(groupId)!.get(memberId)!;
        trace.connections.delete(connectionId);
        if (trace.connections.size === 0) this.#drop(groupId, memberId);
      }
    }
  }

  /** A member without connections is like one that was never heard. */
  #drop(groupId: string, memberId: string): void {
    const members = this.#members.get(groupId)!;
    members.delete(memberId);
    if (members.size === 0) this.#members.delete(groupId);
  }
}
