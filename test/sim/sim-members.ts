/** Who is in the group: the leader takes in who is there, operators put out whom they please. */

import { type Configuration, membersOf } from '../../src/raft/membership.ts';
import type { Replica } from '../../src/replica/replica.ts';
import { encodeClusterFounded } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import type { ClusterWorld } from './cluster-world.ts';
import type { SimNode } from './sim-node.ts';

export class SimMembers {
  readonly #world: ClusterWorld;

  constructor(world: ClusterWorld) {
    this.#world = world;
  }

  /** What the leader does all the time; now and then a member is put out, to come back later. */
  form({ replica, duties }: SimNode): void {
    if (replica?.isLeader !== true || !this.#chance(0.2)) return;
    const { configuration, mayReconfigure } = replica.raft;
    const lost = membersOf(configuration).find((id) => this.#isLost(id));
    if (replica.state.clusterId === '') this.#found(replica);
    else if (lost !== undefined && mayReconfigure) this.#putOut(replica, lost);
    else if (this.#chance(0.05)) this.putOutSome(replica);
    else {
      duties!.form();
      if (this.#chance(0.05)) void duties!.add({ nodeId: 9, peerHost: 'nine', peerPort: 9 });
    }
  }

  #chance(share: number): boolean {
    return this.#world.random.next() < share;
  }

  #found(replica: Replica): void {
    replica.propose({ type: EntryType.clusterFounded, meta: encodeClusterFounded('sim') });
  }

  /** A machine has lost its disk: what it was is gone for good. */
  #isLost(member: string): boolean {
    return this.#world.nodes.every(({ id }) => id !== member);
  }

  /** All nodes are there, and no log has other voters in it. */
  areSettled({ voters }: Configuration): boolean {
    if (voters.some((id) => this.#isLost(id))) return false;
    return this.#world.nodes.every(({ replica }) => {
      const known = replica?.raft.configuration.voters;
      return known !== undefined && [...known].sort().join() === [...voters].sort().join();
    });
  }

  /** An operator in a hurry: one voter, and another as soon as the leader lets them. */
  putOutSome(replica: Replica): void {
    for (let left = 2; left > 0; left--) {
      const { raft } = replica;
      const { voters } = raft.configuration;
      const others = voters.filter((id) => id !== raft.leaderId);
      if (!raft.mayReconfigure || others.length === 0) return;
      // As LeaderDuties.remove, they see that too few would be left.
      if (voters.some((id) => this.#isLost(id))) return;
      this.#putOut(replica, this.#world.pick(others));
    }
  }

  #putOut({ raft, consensus }: Replica, victim: string): void {
    const without = (ids: readonly string[]) => ids.filter((id) => id !== victim);
    const { voters, learners } = raft.configuration;
    const next = { voters: without(voters), learners: without(learners) };
    consensus.proposeMembers({ ...next, removed: [] });
  }
}
