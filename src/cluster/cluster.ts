import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { HostPort } from '../net/listeners.ts';
import { PeerLink } from '../net/peer-link.ts';
import { PeerServer } from '../net/peer-server.ts';
import type { Replica } from '../replica/replica.ts';
import type { ClusterNode } from '../state/commands.ts';
import { EntryType, featureLevel } from '../state/entry-types.ts';
import { defaultTenant } from '../state/tenants.ts';
import type { ClusterNodes } from './cluster-nodes.ts';
import { memberId, nodeIdOf } from './formation.ts';
import { forTenant, GroupLink, type NodeLinks } from './group-link.ts';
import { decodeHello, encodeHello, type Hello } from './hello.ts';
import { LeaderDuties } from './leader-duties.ts';
import { NodeWatch } from './node-watch.ts';
import {
  type MembersWish,
  notLeader,
  type OperatorAnswer,
  operatorId,
  RequestKind,
} from './operator.ts';
import { decodeMessage, firstOtherKind, tenantFrameKind } from './peer-codec.ts';
import { type RequestHandler, Requests } from './requests.ts';

export interface ClusterOptions {
  /** This node. */
  readonly self: ClusterNode;
  /** All nodes that may be in the cluster, this one included. */
  readonly nodes: ClusterNodes;
  readonly listen: HostPort;
  /** A tenant is served on this port and its offset; 0: on any free one. */
  readonly tenantPortBase: number;
  readonly secret: string;
  readonly frameBytesMax: number;
  readonly electionTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Entries after which a node may be somewhere else. */
const movesNodes: ReadonlySet<number> = new Set([
  EntryType.nodeAdmitted,
  EntryType.nodeStored,
  EntryType.members,
]);
const notAdded = 'it was not added: `keylane cluster add`';
/** How often the leader looks whether somebody is to be taken in. */
const formMs = 100;

/**
 * This node among the others of its cluster: the connections to them, what goes over these, and who
 * is taken into the system group. The groups of tenants use the same connections.
 */
export class Cluster implements NodeLinks {
  readonly #options: ClusterOptions;
  readonly #server: PeerServer;
  readonly #links = new Map<number, PeerLink>();
  /** What the node at the other end of each link last said of itself. */
  readonly #hellos = new Map<number, Hello>();
  readonly #requests = new Map<number, Requests>();
  readonly #refusals = new Map<string, string>();
  /** Of the system group. */
  #replica: Replica | undefined;
  /** Those of the tenants, by number. */
  readonly #groups = new Map<number, Replica>();
  #duties: LeaderDuties | undefined;
  #handler: RequestHandler | undefined;
  #cancelForm: (() => void) | undefined;
  readonly #watch: NodeWatch;
  #onChange: (() => void) | undefined;
  #isStarted = false;
  #isStopped = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
    const { secret, frameBytesMax, clock, electionTimeoutMs } = options;
    this.#watch = new NodeWatch({
      ...{ clock, timeoutMs: electionTimeoutMs },
      // Only groups of tenants doze.
      connected: () => (this.#groups.size > 1 ? this.#present().keys() : []),
      ask: (nodeId) => this.hasRoom(nodeId),
      onSilent: (nodeId) => this.#onPeerLost(nodeId),
    });
    this.#server = new PeerServer({
      ...{ secret, frameBytesMax, clock },
      hello: () => encodeHello(this.hello),
      onPeer: (hello, reply) => {
        const { node } = this.#admit(hello);
        const link = this.#links.get(node.nodeId);
        if (link !== undefined) link.retryNow();
        else if (node.nodeId !== operatorId) this.#refused(`node ${node.nodeId}`, notAdded);
        return (frame) => this.#onFrame(node.nodeId, frame, reply);
      },
      onRefused: (reason) => this.#refused('a connection', reason),
    });
  }

  /** Listens, and begins to call the others, if it has not yet. */
  async start(): Promise<void> {
    if (this.#isStarted) return;
    this.#isStarted = true;
    await this.#server.listen(this.#options.listen);
    this.#linkAll();
  }

  /** Where a node is: the settings come first, then what an operator said, then it itself. */
  #addressOf(nodeId: number): HostPort | undefined {
    const { nodes, admitted } = this.#replica?.state ?? {};
    const stored = admitted?.get(nodeId) ?? nodes?.get(nodeId);
    const known = stored && { host: stored.peerHost, port: stored.peerPort };
    return this.#options.nodes.get(nodeId) ?? known;
  }

  /** Calls all nodes that are in the cluster or may be, and no others. */
  #linkAll(): void {
    if (!this.#isStarted) return;
    const { nodes, admitted } = this.#replica?.state ?? {};
    const ids = [this.#options.nodes, nodes, admitted].flatMap((map) => [...(map?.keys() ?? [])]);
    const wanted = new Set(ids.filter((nodeId) => nodeId !== this.#options.self.nodeId));
    for (const [nodeId, link] of this.#links) {
      if (wanted.has(nodeId)) continue;
      link.stop();
      this.#links.delete(nodeId);
      this.#hellos.delete(nodeId);
    }
    for (const nodeId of wanted) {
      if (!this.#links.has(nodeId)) this.#links.set(nodeId, this.#link(nodeId));
    }
  }

  /**
   * Whether this node, whose folder is new, founds the cluster: it has the lowest id of all nodes,
   * and every other one is there and is in no cluster. Resolves when it is known.
   */
  async mayFound(): Promise<boolean> {
    const { nodes, self, clock } = this.#options;
    if (Math.min(...nodes.keys()) !== self.nodeId) return false;
    for (;;) {
      const hellos = [...this.#links].map(([nodeId, link]) =>
        link.isUp ? this.#hellos.get(nodeId) : undefined,
      );
      if (hellos.some((hello) => hello !== undefined && hello.clusterId !== '')) return false;
      if (hellos.every((hello) => hello !== undefined)) return true;
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
        clock.after(1000, resolve);
      });
    }
  }

  /** From now on messages reach the replica, and the leader forms the group. */
  attach(replica: Replica): void {
    this.#replica = replica;
    const { log, clock, self } = this.#options;
    this.#duties = new LeaderDuties({
      ...{ replica, self, level: featureLevel, clock, log },
      present: () => this.present(),
      hasRoom: (nodeId) => this.hasRoom(nodeId),
    });
    this.join(defaultTenant, replica);
    replica.listen({
      onLeading: () => log.info({ term: replica.raft.term }, 'this node leads the cluster'),
      onFollowing: () => log.info({}, 'this node leads the cluster no longer'),
      onApplied: ({ type }) => {
        if (movesNodes.has(type)) this.#linkAll();
      },
    });
    this.#linkAll();
    this.#formLater();
    this.#watch.start();
  }

  /** Who answers the requests of the other nodes. */
  serve(handler: RequestHandler): void {
    this.#handler = handler;
  }

  get self(): ClusterNode {
    return this.#options.self;
  }

  /** The way of a tenant's group to its other members. */
  linkOf(tenant: number): GroupLink {
    return new GroupLink(this, tenant);
  }

  /** From now on messages for the group of this tenant reach its replica. */
  join(tenant: number, replica: Replica): void {
    this.#groups.set(tenant, replica);
  }

  leave(tenant: number): void {
    this.#groups.delete(tenant);
  }

  sendTo(member: string, frame: readonly Uint8Array[]): void {
    const nodeId = nodeIdOf(member);
    const hello = this.#hellos.get(nodeId);
    // A node whose folder was wiped is not the one that is meant.
    if (hello === undefined || memberId(hello.node) !== member) return;
    this.#links.get(nodeId)?.send(frame);
  }

  askNode(nodeId: number, request: readonly Uint8Array[]): Promise<Buffer | undefined> {
    const requests = this.#requests.get(nodeId);
    return requests === undefined ? Promise.resolve(undefined) : requests.ask(request);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelForm?.();
    this.#watch.stop();
    for (const link of this.#links.values()) link.stop();
    for (const requests of this.#requests.values()) requests.fail();
    await this.#server.close();
  }

  /** What this node says of itself. */
  get hello(): Hello {
    const clusterId = this.#replica?.state.clusterId ?? '';
    const { self: node, tenantPortBase } = this.#options;
    return { clusterId, node, level: featureLevel, tenantPortBase };
  }

  #admit(bytes: Buffer): Hello {
    const hello = decodeHello(bytes);
    const { clusterId, node } = hello;
    const own = this.#replica?.state.clusterId ?? '';
    if (clusterId !== '' && own !== '' && clusterId !== own) {
      throw new Error(`node ${node.nodeId} is of the cluster ${clusterId}, and this one of ${own}`);
    }
    if (node.nodeId === this.#options.self.nodeId) {
      throw new Error(`another node has the id ${node.nodeId} of this one`);
    }
    return hello;
  }

  #link(nodeId: number): PeerLink {
    const { secret, frameBytesMax, clock, log } = this.#options;
    const address = this.#addressOf(nodeId)!;
    const link: PeerLink = new PeerLink({
      ...{ secret, frameBytesMax, clock },
      address: () => this.#addressOf(nodeId) ?? address,
      hello: () => encodeHello(this.hello),
      onHello: (bytes) => {
        const hello = this.#admit(bytes);
        if (hello.node.nodeId !== nodeId) {
          throw new Error(`at the address of node ${nodeId} is node ${hello.node.nodeId}`);
        }
        this.#hellos.set(nodeId, hello);
      },
      onUp: () => {
        log.info({ nodeId }, 'connected to a node of the cluster');
        this.#refusals.delete(`node ${nodeId}`);
        this.#onChange?.();
      },
      onDown: () => {
        if (!this.#isStopped)
          log.warn({ nodeId }, 'the connection to a node of the cluster is lost');
        this.#requests.get(nodeId)!.fail();
        this.#onPeerLost(nodeId);
      },
      onRefused: (reason) => this.#refused(`node ${nodeId}`, reason),
      onFrame: (frame) => this.#requests.get(nodeId)!.onAnswer(frame),
    });
    this.#requests.set(nodeId, new Requests((pieces) => link.send(pieces)));
    return link;
  }

  /** Groups that its node leads do not wait as long as if nothing had happened. */
  #onPeerLost(nodeId: number): void {
    const hello = this.#hellos.get(nodeId);
    if (hello === undefined || this.#isStopped) return;
    const member = memberId(hello.node);
    for (const replica of this.#groups.values()) replica.consensus.onPeerLost(member);
  }

  /** Each reason is logged once, however often the other node tries. */
  #refused(who: string, reason: string): void {
    if (this.#refusals.get(who) === reason || this.#isStopped) return;
    this.#refusals.set(who, reason);
    this.#options.log.warn({ reason }, `${who} of the cluster cannot be used`);
  }

  #onFrame(nodeId: number, frame: Buffer, reply: (pieces: readonly Uint8Array[]) => void): void {
    if (frame[0]! >= firstOtherKind) {
      Requests.serve(frame, this.#handler, reply);
      return;
    }
    const { tenant, rest } = forTenant(frame, tenantFrameKind);
    const { message, entries } = decodeMessage(rest);
    const isForThis = message.to === memberId(this.#options.self);
    if (isForThis && nodeIdOf(message.from) === nodeId) {
      this.#groups.get(tenant)?.consensus.receive(message, entries);
    }
  }

  #formLater(): void {
    this.#cancelForm = this.#options.clock.after(formMs, () => {
      if (this.#isStopped) return;
      this.#duties!.form();
      this.#formLater();
    });
  }

  /** Whether another node has room on its disk, as it says itself. */
  async hasRoom(nodeId: number): Promise<boolean> {
    const answer = await this.askNode(nodeId, [Buffer.of(RequestKind.room)]);
    return answer?.[0] === 1;
  }

  /** What the nodes say of themselves that are connected. */
  present(): Hello[] {
    return [...this.#present().values()];
  }

  #present(): Map<number, Hello> {
    return new Map([...this.#hellos].filter(([nodeId]) => this.#links.get(nodeId)?.isUp === true));
  }

  /** Does what an operator asks for, as the leader. Answers what came of it. */
  async fulfil(wish: MembersWish): Promise<OperatorAnswer> {
    if (this.#duties === undefined) return notLeader;
    return wish.kind === 'add' ? this.#duties.add(wish.node) : this.#duties.remove(wish.nodeId);
  }
}
