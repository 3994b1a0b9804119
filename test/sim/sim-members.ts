/** Who is in the group: the leader takes in who is there, operators put out whom they please. */
import { nextConfiguration } from '../../src/cluster/formation.ts';
import type { Configuration } from '../../src/raft/membership.ts';
import type { Replica } from '../../src/replica/replica.ts';
import type { ClusterWorld } from './cluster-world.ts';

/** A learner that lacks fewer entries has the log. */
const caughtUpEntries = 20;

export class SimMembers {
  readonly #world: ClusterWorld;

  constructor(world: ClusterWorld) {
    this.#world = world;
  }

  /** As cluster.ts does; now and then a member is put out, to come back later. */
  form(replica: Replica): void {
    const { random } = this.#world;
    if (!replica.isLeader || !replica.raft.mayReconfigure || random.next() < 0.8) return;
    const { configuration } = replica.raft;
    const lost = members(configuration).find((id) => this.#isLost(id));
    if (lost !== undefined) this.#putOut(replica, lost);
    else if (random.next() < 0.05) this.putOutSome(replica);
    else this.#takeIn(replica);
  }

  /** A machine has lost its disk: what it was is gone for good. */
  #isLost(member: string): boolean {
    return this.#world.nodes.every(({ id }) => id !== member);
  }

  isWhole({ voters }: Configuration): boolean {
    return !voters.some((id) => this.#isLost(id));
  }

  #takeIn({ raft, consensus }: Replica): void {
    const present = this.#world.nodes.filter(({ isUp, id }) => isUp && id !== raft.leaderId);
    const candidates = present.map(({ node, id }) => {
      const lacks = raft.lastIndex - (raft.peer(id)?.matchIndex ?? 0);
      return { node, isCaughtUp: lacks < caughtUpEntries };
    });
    const next = nextConfiguration(raft.configuration, candidates);
    if (next === undefined) return;
    this.#world.counts.memberChanges++;
    consensus.proposeMembers({ ...next, removed: [] });
  }

  /** An operator in a hurry: one voter, and another as soon as the leader lets them. */
  putOutSome(replica: Replica): void {
    for (let left = 2; left > 0; left--) {
      const { raft } = replica;
      const { voters } = raft.configuration;
      const others = voters.filter((id) => id !== raft.leaderId);
      if (!raft.mayReconfigure || others.length === 0) return;
      this.#putOut(replica, this.#world.pick(others));
    }
  }

  #putOut({ raft, consensus }: Replica, victim: string): void {
    const without = (ids: readonly string[]) => ids.filter((id) => id !== victim);
    const { voters, learners } = raft.configuration;
    this.#world.counts.memberChanges++;
    const next = { voters: without(voters), learners: without(learners) };
    consensus.proposeMembers({ ...next, removed: [] });
  }
}

function members({ voters, learners }: Configuration): string[] {
  return [...voters, ...learners];
}
