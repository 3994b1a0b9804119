import { encodeMessage } from '../../src/cluster/peer-codec.ts';
import type { Entry } from '../../src/log/format.ts';
import type { Message } from '../../src/raft/messages.ts';
import type { ClusterWorld } from './cluster-world.ts';
import type { SimNode } from './sim-node.ts';

/** A way that is not open, in one direction, for a time. */
interface Cut {
  readonly from: SimNode;
  readonly to: SimNode;
}

/** What is between the nodes: it delays, loses, repeats, overtakes, and is cut, one way or both. */
export class SimNetwork {
  lossRate = 0;
  readonly #world: ClusterWorld;
  readonly #cuts = new Set<Cut>();
  /** When the last message of each way arrives: most keep their order, as those of a connection. */
  readonly #arrivals = new Map<string, number>();

  constructor(world: ClusterWorld) {
    this.#world = world;
  }

  /** Nothing gets from one node to the other for so long. */
  cut(from: SimNode, to: SimNode, forMs: number): void {
    const cut = { from, to };
    this.#cuts.add(cut);
    this.#world.clock.after(forMs, () => this.#cuts.delete(cut));
  }

  heal(): void {
    this.#cuts.clear();
    this.lossRate = 0;
  }

  #isLost(from: SimNode, to: SimNode): boolean {
    for (const cut of this.#cuts) if (cut.from === from && cut.to === to) return true;
    return this.#world.random.next() < this.lossRate;
  }

  send(from: SimNode, message: Message, entries: readonly Entry[]): void {
    const { random, clock } = this.#world;
    const to = this.#world.nodes.find(({ id }) => id === message.to);
    if (to === undefined || this.#isLost(from, to)) return;
    const bytes = Buffer.concat(encodeMessage(message, entries));
    const copies = random.next() < 0.02 ? 2 : 1;
    const way = `${from.id}>${to.id}`;
    const nowMs = clock.monotonicMs();
    for (let i = 0; i < copies; i++) {
      let arrivalMs = nowMs + this.#world.below(4);
      if (random.next() < 0.03) arrivalMs += this.#world.below(300);
      else {
        arrivalMs = Math.max(arrivalMs, this.#arrivals.get(way) ?? 0);
        this.#arrivals.set(way, arrivalMs);
      }
      clock.after(arrivalMs - nowMs, () => to.receive(Buffer.from(bytes)));
    }
  }

  /** A request that another node passes on; undefined if that does not answer. */
  async askNode(from: SimNode, nodeId: number, request: Buffer): Promise<Buffer | undefined> {
    const to = this.#world.nodes.find(({ node }) => node.nodeId === nodeId);
    // The first byte says what it is.
    return this.#ask(from, to, () => to!.answerForwarded(request.subarray(1)));
  }

  /** Whether a node has room on its disk. */
  async askForRoom(from: SimNode, nodeId: number): Promise<boolean> {
    const to = this.#world.nodes.find(({ node }) => node.nodeId === nodeId);
    return (await this.#ask(from, to, () => to!.answerRoom()))?.[0] === 1;
  }

  /** A request for a snapshot. */
  async ask(from: SimNode, member: string, request: Buffer): Promise<Buffer | undefined> {
    const to = this.#world.nodes.find(({ id }) => id === member);
    return this.#ask(from, to, () => to!.answerFetch(request));
  }

  async #ask(
    from: SimNode,
    to: SimNode | undefined,
    answer: () => Promise<Buffer | undefined>,
  ): Promise<Buffer | undefined> {
    const travel = () =>
      new Promise<void>((resolve) => {
        this.#world.clock.after(this.#world.below(6), from.clock.guard(resolve));
      });
    await travel();
    if (to === undefined || this.#isLost(from, to)) return undefined;
    const answered = await answer();
    await travel();
    return this.#isLost(to, from) ? undefined : answered;
  }
}
