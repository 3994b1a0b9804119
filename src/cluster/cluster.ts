import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { Entry } from '../log/format.ts';
import type { HostPort } from '../net/listeners.ts';
import { PeerLink } from '../net/peer-link.ts';
import { PeerServer } from '../net/peer-server.ts';
import { majorityOf } from '../raft/membership.ts';
import type { Message } from '../raft/messages.ts';
import type { Outcome } from '../replica/group-commit.ts';
import type { PeerPort } from '../replica/peer-port.ts';
import type { Replica } from '../replica/replica.ts';
import { type ClusterNode, encodeNodeStored } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { ClusterNodes } from './cluster-nodes.ts';
import { memberId, nextConfiguration, nodeIdOf } from './formation.ts';
import { decodeHello, encodeHello, type Hello } from './hello.ts';
import { type Removal, RequestKind } from './operator.ts';
import { decodeMessage, encodeMessage, firstOtherKind } from './peer-codec.ts';
import { type RequestHandler, Requests } from './requests.ts';

export interface ClusterOptions {
  /** This node. */
  readonly self: ClusterNode;
  /** All nodes that may be in the cluster, this one included. */
  readonly nodes: ClusterNodes;
  readonly listen: HostPort;
  readonly secret: string;
  readonly frameBytesMax: number;
  readonly clock: Clock;
  readonly log: Logger;
}

function refused(reason: string): Removal {
  return { outcome: 'refused', reason };
}

/** Of those that were put out so many are remembered: enough for all that may still be running. */
const removedMax = 100;
/** How often the leader looks whether somebody is to be taken in. */
const formMs = 100;
/** A learner that lacks no more than this has the log. */
const caughtUpEntries = 1000;

/**
 * This node among the others of its cluster: the connections to them, what goes over these, and who
 * is taken into the Raft group.
 */
export class Cluster implements PeerPort {
  readonly #options: ClusterOptions;
  readonly #server: PeerServer;
  readonly #links = new Map<number, PeerLink>();
  /** What the node at the other end of each link last said of itself. */
  readonly #hellos = new Map<number, Hello>();
  readonly #requests = new Map<number, Requests>();
  readonly #refusals = new Map<string, string>();
  #replica: Replica | undefined;
  #handler: RequestHandler | undefined;
  #cancelForm: (() => void) | undefined;
  #onChange: (() => void) | undefined;
  #isStopped = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
    const { secret, frameBytesMax, clock } = options;
    this.#server = new PeerServer({
      ...{ secret, frameBytesMax, clock },
      hello: () => this.#hello(),
      onPeer: (hello, reply) => {
        const { node } = this.#admit(hello);
        this.#links.get(node.nodeId)?.retryNow();
        return (frame) => this.#onFrame(node.nodeId, frame, reply);
      },
      onRefused: (reason) => this.#refused('a connection', reason),
    });
  }

  /** Listens, and begins to call the others. */
  async start(): Promise<void> {
    await this.#server.listen(this.#options.listen);
    for (const [nodeId, address] of this.#options.nodes) {
      if (nodeId !== this.#options.self.nodeId)
        this.#links.set(nodeId, this.#link(nodeId, address));
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
    const { log } = this.#options;
    replica.listen({
      onLeading: () => log.info({ term: replica.raft.term }, 'this node leads the cluster'),
      onFollowing: () => log.info({}, 'this node leads the cluster no longer'),
    });
    this.#formLater();
  }

  /** Who answers the requests of the other nodes. */
  serve(handler: RequestHandler): void {
    this.#handler = handler;
  }

  send(message: Message, entries: readonly Entry[]): void {
    const nodeId = nodeIdOf(message.to);
    const hello = this.#hellos.get(nodeId);
    // A node whose folder was wiped is not the one that is meant.
    if (hello === undefined || memberId(hello.node) !== message.to) return;
    this.#links.get(nodeId)?.send(encodeMessage(message, entries));
  }

  ask(member: string, request: Buffer): Promise<Buffer | undefined> {
    return this.askNode(nodeIdOf(member), [Buffer.of(RequestKind.snapshot), request]);
  }

  /** Asks another node; undefined if it cannot be reached, or goes away before it answers. */
  askNode(nodeId: number, request: readonly Uint8Array[]): Promise<Buffer | undefined> {
    const requests = this.#requests.get(nodeId);
    return requests === undefined ? Promise.resolve(undefined) : requests.ask(request);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelForm?.();
    for (const link of this.#links.values()) link.stop();
    for (const requests of this.#requests.values()) requests.fail();
    await this.#server.close();
  }

  #hello(): Buffer {
    const clusterId = this.#replica?.state.clusterId ?? '';
    return encodeHello({ clusterId, node: this.#options.self });
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

  #link(nodeId: number, address: HostPort): PeerLink {
    const { secret, frameBytesMax, clock, log } = this.#options;
    const link: PeerLink = new PeerLink({
      ...{ secret, frameBytesMax, clock },
      address: () => address,
      hello: () => this.#hello(),
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
      },
      onRefused: (reason) => this.#refused(`node ${nodeId}`, reason),
      onFrame: (frame) => this.#requests.get(nodeId)!.onAnswer(frame),
    });
    this.#requests.set(nodeId, new Requests((pieces) => link.send(pieces)));
    return link;
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
    const { message, entries } = decodeMessage(frame);
    const isForThis = message.to === memberId(this.#options.self);
    if (isForThis && nodeIdOf(message.from) === nodeId) {
      this.#replica?.consensus.receive(message, entries);
    }
  }

  #formLater(): void {
    this.#cancelForm = this.#options.clock.after(formMs, () => {
      if (this.#isStopped) return;
      this.#form();
      this.#formLater();
    });
  }

  /** As the leader, takes in who is there and may be, and notes where nodes are reached. */
  #form(): void {
    const replica = this.#replica!;
    if (!replica.isLeader || replica.state.clusterId === '') return;
    const { raft, consensus } = replica;
    const present = [...this.#hellos]
      .filter(([nodeId]) => this.#links.get(nodeId)?.isUp === true)
      .map(([, { node }]) => node);
    this.#noteNodes([this.#options.self, ...present]);
    if (!raft.mayReconfigure) return;
    const removed = replica.state.members?.removed ?? [];
    const welcome = present.filter((node) => !removed.includes(memberId(node)));
    const candidates = welcome.map((node) => {
      const lacks = raft.lastIndex - (raft.peer(memberId(node))?.matchIndex ?? 0);
      return { node, isCaughtUp: lacks <= caughtUpEntries };
    });
    const next = nextConfiguration(raft.configuration, candidates);
    if (next === undefined) return;
    this.#options.log.info({ ...next }, 'the members of the cluster change');
    consensus.proposeMembers({ ...next, removed });
  }

  /** Puts a node out, for good: what an operator asks for. Answers what came of it. */
  async remove(nodeId: number): Promise<Removal> {
    const replica = this.#replica;
    if (replica?.isLeader !== true) return { outcome: 'not-leader', reason: '' };
    const { raft, state, consensus } = replica;
    const { voters, learners } = raft.configuration;
    const member = [...voters, ...learners].find((one) => nodeIdOf(one) === nodeId);
    if (member === undefined) return refused(`node ${nodeId} is no member of the cluster`);
    if (nodeId === this.#options.self.nodeId) {
      return refused(`node ${nodeId} leads the cluster: stop it first, and another one will`);
    }
    if (!raft.mayReconfigure) return refused('another change of the members is under way');
    const left = voters.filter((voter) => voter !== member);
    const nowMs = this.#options.clock.monotonicMs();
    const self = memberId(this.#options.self);
    const there = left.filter((voter) => voter === self || raft.isInSync(voter, nowMs));
    if (there.length < majorityOf(left.length)) {
      return refused('too few of the other nodes are there to go on without it');
    }
    const next = { voters: left, learners: learners.filter((learner) => learner !== member) };
    const removed = [...(state.members?.removed ?? []), member].slice(-removedMax);
    this.#options.log.warn({ nodeId, member }, 'an operator puts a node out of the cluster');
    const outcome = await new Promise<Outcome>((resolve) => {
      consensus.proposeMembers({ ...next, removed }, resolve);
    });
    return outcome === 'applied'
      ? { outcome: 'done', reason: '' }
      : refused('this node has lost the leadership meanwhile: look at the status');
  }

  #noteNodes(present: readonly ClusterNode[]): void {
    const replica = this.#replica!;
    const { configuration } = replica.raft;
    const members = [...configuration.voters, ...configuration.learners];
    for (const node of present) {
      const known = replica.state.nodes.get(node.nodeId);
      if (!members.includes(memberId(node)) || isSame(known, node)) continue;
      replica.propose({ type: EntryType.nodeStored, meta: encodeNodeStored(node) });
    }
  }
}

function isSame(a: ClusterNode | undefined, b: ClusterNode): boolean {
  return a !== undefined && encodeNodeStored(a).equals(encodeNodeStored(b));
}
