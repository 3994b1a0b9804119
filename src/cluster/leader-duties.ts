import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { majorityOf, membersOf } from '../raft/membership.ts';
import type { Command } from '../replica/consensus.ts';
import type { Outcome } from '../replica/group-commit.ts';
import type { Replica } from '../replica/replica.ts';
import {
  type AdmittedNode,
  type ClusterNode,
  encodeFeatureLevel,
  encodeNodeAdmitted,
} from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import { memberId, nextConfiguration, nextFeatureLevel, nodeIdOf } from './formation.ts';
import { candidateOf, DiskRelief, noteNodes } from './group-duties.ts';
import type { Hello } from './hello.ts';
import { done, notLeader, type OperatorAnswer, refused } from './operator.ts';

export interface LeaderDutiesOptions {
  readonly replica: Replica;
  readonly self: ClusterNode;
  /** Up to which feature level this node understands entries. */
  readonly level: number;
  /** What the other nodes say of themselves that are connected. */
  readonly present: () => Hello[];
  /** Whether another node has room on its disk; false if it cannot be asked. */
  readonly hasRoom: (nodeId: number) => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Of those that were put out so many are remembered: enough for all that may still be running. */
const removedMax = 100;
/** Since then nodes may join that the settings do not name. */
const admissionLevel = 2;

/** What the node that leads does for its cluster; on all others nothing of this happens. */
export class LeaderDuties {
  readonly #options: LeaderDutiesOptions;
  /** Nodes whose version is too old, which were spoken of in the log. */
  readonly #tooOld = new Set<string>();
  readonly #relief: DiskRelief;
  #levelPlanned = 0;

  constructor(options: LeaderDutiesOptions) {
    this.#options = options;
    this.#relief = new DiskRelief(options);
  }

  /** Takes in who is there and may be, notes where nodes are reached, raises the feature level. */
  form(): void {
    const { replica, self } = this.#options;
    if (!replica.isLeader || replica.state.clusterId === '') return;
    const present = this.#options.present();
    noteNodes(replica, [self, ...present.map(({ node }) => node)]);
    this.#raiseLevel(present);
    this.#takeIn(present);
    this.#relief.seek(present);
  }

  #takeIn(present: readonly Hello[]): void {
    const { raft, state, consensus } = this.#options.replica;
    if (!raft.mayReconfigure) return;
    const removed = state.members?.removed ?? [];
    const welcome = present.filter(({ node, level }) => {
      return !removed.includes(memberId(node)) && this.#isNewEnough(node, level);
    });
    const candidates = welcome.map(({ node }) => candidateOf(this.#options.replica, node));
    const next = nextConfiguration(raft.configuration, candidates);
    if (next === undefined) return;
    this.#options.log.info({ ...next }, 'the members of the cluster change');
    consensus.proposeMembers({ ...next, removed });
  }

  /** It would stop at the first entry that it does not understand. */
  #isNewEnough(node: ClusterNode, level: number): boolean {
    const needed = this.#levelToBe;
    if (level >= needed) return true;
    const member = memberId(node);
    if (!this.#tooOld.has(member)) {
      this.#tooOld.add(member);
      const text = 'a node of an older version is not taken in: all others are newer';
      this.#options.log.warn({ nodeId: node.nodeId, level, needed }, text);
    }
    return false;
  }

  /** With what is under way: a node that is taken in meanwhile gets that, too. */
  get #levelToBe(): number {
    return Math.max(this.#options.replica.state.featureLevel, this.#levelPlanned);
  }

  #raiseLevel(present: readonly Hello[]): void {
    const { replica, self, level: ownLevel, log } = this.#options;
    const { raft } = replica;
    const own = { member: memberId(self), level: ownLevel };
    const announced = present.map(({ node, level }) => ({ member: memberId(node), level }));
    const level = nextFeatureLevel(raft.configuration, [own, ...announced]);
    if (level <= this.#levelToBe) return;
    this.#levelPlanned = level;
    log.info(
      { featureLevel: level },
      'all members are of a newer version: what it can do may be used now',
    );
    const meta = encodeFeatureLevel(level);
    replica.propose({ type: EntryType.featureLevelRaised, meta }, () => {
      this.#levelPlanned = 0;
    });
  }

  // What an operator asks for.

  /** Lets a node join that the settings of the others do not name, or says where one has gone. */
  async add(node: AdmittedNode): Promise<OperatorAnswer> {
    const { replica, log, self } = this.#options;
    if (!replica.isLeader) return notLeader;
    const { nodeId, peerHost, peerPort } = node;
    if (replica.state.featureLevel < admissionLevel) {
      return refused('some node of the cluster is of an older version, or away');
    }
    if (nodeId === self.nodeId) return refused(`node ${nodeId} leads the cluster`);
    log.warn({ nodeId, peerHost, peerPort }, 'an operator lets a node join the cluster');
    return this.#propose({ type: EntryType.nodeAdmitted, meta: encodeNodeAdmitted(node) });
  }

  /** Puts a node out, for good. */
  async remove(nodeId: number): Promise<OperatorAnswer> {
    const { replica, self, clock, log } = this.#options;
    if (!replica.isLeader) return notLeader;
    const { raft, state, consensus } = replica;
    const { voters, learners } = raft.configuration;
    const member = membersOf(raft.configuration).find((one) => nodeIdOf(one) === nodeId);
    if (member === undefined) return refused(`node ${nodeId} is no member of the cluster`);
    if (nodeId === self.nodeId) {
      return refused(`node ${nodeId} leads the cluster: stop it first, and another one will`);
    }
    if (!raft.mayReconfigure) return refused('another change of the members is under way');
    const left = voters.filter((voter) => voter !== member);
    const nowMs = clock.monotonicMs();
    const there = left.filter((one) => one === memberId(self) || raft.isInSync(one, nowMs));
    if (there.length < majorityOf(left.length)) {
      return refused('too few of the other nodes are there to go on without it');
    }
    const next = { voters: left, learners: learners.filter((learner) => learner !== member) };
    const removed = [...(state.members?.removed ?? []), member].slice(-removedMax);
    log.warn({ nodeId, member }, 'an operator puts a node out of the cluster');
    return answerOf((settle) => consensus.proposeMembers({ ...next, removed }, settle));
  }

  #propose(command: Command): Promise<OperatorAnswer> {
    return answerOf((settle) => this.#options.replica.propose(command, settle));
  }
}

async function answerOf(propose: (done: (outcome: Outcome) => void) => void) {
  const outcome = await new Promise<Outcome>(propose);
  return outcome === 'applied'
    ? done
    : refused('this node has lost the leadership meanwhile: look at the status');
}
