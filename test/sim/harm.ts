/** What goes wrong in a simulated cluster: with machines, their disks and clocks, and between them. */
import type { ClusterWorld } from './cluster-world.ts';
import type { SimNode } from './sim-node.ts';

/** Kinds of harm, and how often each comes about beside the others. */
const weights = {
  stop: 30,
  divide: 10,
  lose: 6,
  wipe: 3,
  pause: 8,
  slowDown: 6,
  fill: 5,
  jump: 2,
  // What is aimed at the leader: by chance these would need too many seeds.
  handOver: 6,
  strand: 4,
  forsake: 4,
} as const;
type Kind = keyof typeof weights;
/** Each kind as often as it weighs. */
const lots = (Object.entries(weights) as [Kind, number][]).flatMap(([kind, weight]) =>
  Array.from({ length: weight }, () => kind),
);

const dayMs = 86_400_000;

export class Harm {
  readonly #world: ClusterWorld;

  constructor(world: ClusterWorld) {
    this.#world = world;
  }

  /** Something goes wrong. Most of it ends by itself. */
  async act(): Promise<void> {
    const kind = this.#world.pick(lots);
    this.#world.note(() => `harm: ${kind}`);
    await this[kind](this.#world.pick(this.#world.nodes));
    if (this.#chance(0.3)) await this.#outlast(this.#world.below(400));
  }

  /** Whoever watches over the machines starts what is down, sooner or later. */
  async watch(): Promise<void> {
    if (!this.#chance(0.015)) return;
    const down = this.#world.nodes.filter(({ isUp }) => !isUp);
    if (down.length > 0) await this.#world.pick(down).start();
  }

  #chance(share: number): boolean {
    return this.#world.random.next() < share;
  }

  /** Nothing else happens for a while, which may be longer than an election takes. */
  async #outlast(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 10) {
      await this.#world.pass(10);
      this.#world.check();
    }
  }

  // Machines.

  protected async stop(node: SimNode): Promise<void> {
    const wasUp = node.isUp;
    if (wasUp) node.stop(this.#chance(0.6));
    // Now and then it is there again before anybody missed it.
    if (!wasUp || this.#chance(0.4)) await node.start();
  }

  protected pause(node: SimNode): void {
    node.pause(this.#world.below(600));
  }

  protected jump(node: SimNode): void {
    node.clock.jumpWall(this.#world.pick([-dayMs, 3650 * dayMs]));
  }

  // Disks.

  /** A disk is lost for good: no more of them than the group can bear. */
  protected wipe(): void {
    const { nodes, members } = this.#world;
    const raft = this.#world.leader?.replica?.raft;
    if (raft?.mayReconfigure !== true || raft.configuration.voters.length < 3) return;
    // With a change of members under way this would be the second loss.
    if (!members.areSettled(raft.configuration)) return;
    this.#world.pick(nodes.filter(({ id }) => id !== raft.leaderId)).wipe();
  }

  protected slowDown(node: SimNode): void {
    node.slowMs = this.#world.pick([10, 60]);
    this.#world.clock.after(this.#world.below(1000), () => {
      node.slowMs = 0;
    });
  }

  protected fill(node: SimNode): void {
    const { disk } = node;
    this.#world.counts.fullDisks++;
    disk.quotaBytes = disk.usedBytes + this.#world.below(4000);
    this.#world.clock.after(this.#world.below(1500), () => {
      disk.quotaBytes = Number.POSITIVE_INFINITY;
    });
  }

  // The network.

  protected divide(node: SimNode): void {
    const { network, counts, nodes } = this.#world;
    counts.partitions++;
    const forMs = this.#world.below(800);
    for (const other of nodes) {
      if (this.#chance(0.7)) network.cut(node, other, forMs);
      if (this.#chance(0.7)) network.cut(other, node, forMs);
    }
  }

  protected lose(): void {
    const { network, clock } = this.#world;
    network.lossRate = this.#world.pick([0.02, 0.2]);
    clock.after(this.#world.below(1500), () => {
      network.lossRate = 0;
    });
  }

  /** From now on the node hears of nobody, or nobody of it. */
  #cutOff(node: SimNode, ways: 'to' | 'both', forMs: number): void {
    const { network, nodes } = this.#world;
    for (const other of nodes) {
      network.cut(other, node, forMs);
      if (ways === 'both') network.cut(node, other, forMs);
    }
  }

  // Leaders.

  /** Leadership is handed over; the leader may not hear what comes of it. */
  protected handOver(): void {
    const { leader, counts } = this.#world;
    if (leader?.replica?.consensus.handOver() !== true) return;
    counts.handOvers++;
    if (!this.#chance(0.4)) return;
    this.#world.clock.after(this.#world.below(20), () => {
      this.#cutOff(leader, 'to', this.#world.below(400));
    });
  }

  /** The leader is cut off, and somebody may still ask it to change the members. */
  protected strand(): void {
    const { leader, members, counts } = this.#world;
    if (leader === undefined) return;
    counts.partitions++;
    this.#cutOff(leader, 'both', 100 + this.#world.below(500));
    if (this.#chance(0.5)) members.putOutSome(leader.replica!);
  }

  /**
   * Followers lose their leader one after the other: first so many that the others are just a
   * majority, then one of these forgets everything but its disk, and the leader is cut off.
   */
  protected async forsake(): Promise<void> {
    const { leader, nodes, network, counts } = this.#world;
    const followers = nodes.filter((node) => node !== leader && node.isUp && !node.isPaused);
    if (leader === undefined || followers.length < nodes.length - 1) return;
    counts.partitions++;
    const lostFor = 600;
    const [restarted, ...others] = this.#shuffled(followers);
    for (const lost of others.slice(0, Math.floor(nodes.length / 2))) {
      network.cut(leader, lost, lostFor);
      network.cut(lost, leader, lostFor);
    }
    await this.#outlast(100 + this.#world.below(150));
    if (restarted!.isUp) restarted!.stop(this.#chance(0.5));
    this.#cutOff(leader, 'both', lostFor);
    if (!restarted!.isUp) await restarted!.start();
    await this.#outlast(100);
  }

  #shuffled<T>(items: readonly T[]): T[] {
    const left = [...items];
    return items.map(() => left.splice(this.#world.below(left.length), 1)[0]!);
  }

  /** Everything works again. */
  async end(): Promise<void> {
    const { network, nodes } = this.#world;
    network.heal();
    for (const node of nodes) {
      node.resume();
      node.slowMs = 0;
      node.disk.quotaBytes = Number.POSITIVE_INFINITY;
      while (!node.isUp || node.isOld) {
        if (node.isUp) node.stop(false);
        await node.start();
      }
    }
  }
}
