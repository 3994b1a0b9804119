/**
 * What holds between the members of a group after every event, seen from outside: a fault shows
 * itself here long before it costs a record, for which a leader has to be lost at the right moment.
 */
import assert from 'node:assert/strict';
import { type Raft, Role } from '../../src/raft/raft.ts';
import type { Replica } from '../../src/replica/replica.ts';
import type { SimNode } from './sim-node.ts';

/** Entries below the newest that two logs share that are compared. */
const comparedMax = 16;

interface Seen {
  readonly replica: Replica;
  readonly term: number;
  readonly isLeader: boolean;
  readonly configuration: unknown;
  readonly commitIndex: number;
}

export class RaftSafety {
  readonly #seen = new Map<SimNode, Seen>();
  /** Who led in each term. */
  readonly #leaders = new Map<number, string>();
  /** The terms of committed entries, by index. */
  readonly #committed: number[] = [];
  /** The highest index that leaders committed, by the term they led in. */
  readonly #committedIn = new Map<number, number>();

  get elections(): number {
    return this.#leaders.size;
  }

  check(nodes: readonly SimNode[]): void {
    const up = nodes.filter(({ replica }) => replica !== undefined);
    const answering = up.filter(({ replica }) => replica!.mayAnswer).map(({ id }) => id);
    assert.ok(answering.length < 2, `${answering} have a lease at the same time`);
    for (const node of up) {
      this.#checkLeader(node);
      this.#checkCommits(node, up);
    }
    for (const [i, node] of up.entries()) checkMatching(node, up[i + 1]);
  }

  /** Election safety (5.2): a term has one leader. */
  #checkLeader({ replica, id }: SimNode): void {
    const { role, term } = replica!.raft;
    if (role !== Role.leader) return;
    const known = this.#leaders.get(term);
    if (known === undefined) this.#leaders.set(term, id);
    else assert.equal(id, known, `two leaders of term ${term}`);
  }

  #checkCommits(node: SimNode, up: readonly SimNode[]): void {
    const replica = node.replica!;
    const { raft } = replica;
    const { term, commitIndex, configuration } = raft;
    const isLeader = raft.role === Role.leader;
    const before = this.#seen.get(node);
    this.#seen.set(node, { replica, term, isLeader, configuration, commitIndex });
    const isSame = before?.replica === replica && before.term === term;
    const ledBefore = isSame && before.isLeader;
    if (isLeader && !ledBefore) this.#checkComplete(node);
    // What it had committed at its start was somebody's word before.
    const first = before?.replica === replica ? before.commitIndex + 1 : commitIndex + 1;
    if (first > commitIndex) return;
    for (let index = first; index <= commitIndex; index++) {
      const known = this.#committed[index];
      const own = raft.termAt(index);
      if (own === undefined) continue;
      assert.equal(own, known ?? own, `${node.id} takes another entry ${index} for committed`);
      this.#committed[index] = own;
    }
    if (!ledBefore || !isLeader || before.configuration !== configuration) return;
    assert.equal(
      raft.termAt(commitIndex),
      term,
      `${node.id} commits what it has not begun (5.4.2)`,
    );
    this.#committedIn.set(term, Math.max(commitIndex, this.#committedIn.get(term) ?? 0));
    const { voters } = configuration;
    const having = voters.filter((voter) => {
      const member = up.find(({ id }) => id === voter);
      // Of who is down nothing is known.
      if (member === undefined) return true;
      const { raft: log } = member.replica!;
      return log.persistedIndex >= commitIndex && holds(log, commitIndex, term);
    });
    const isMajority = having.length * 2 > voters.length;
    assert.ok(isMajority, `${node.id} commits ${commitIndex}; of ${voters} ${having} have it`);
  }

  /** Leader completeness (5.4): it has what leaders of earlier terms committed. */
  #checkComplete({ replica, id }: SimNode): void {
    const { raft } = replica!;
    for (const [term, index] of this.#committedIn) {
      if (term >= raft.term) continue;
      assert.ok(holds(raft, index, term), `${id} leads without entry ${index} of term ${term}`);
    }
  }
}

/** Whether a log has the entry, or has removed it. */
function holds(raft: Raft, index: number, term: number): boolean {
  const own = raft.termAt(index);
  return own === term || (own === undefined && index < raft.lastIndex);
}

/** Log matching (5.3): two logs that share an entry share all before it. */
function checkMatching(one: SimNode, other: SimNode | undefined): void {
  if (other === undefined) return;
  const a = one.replica!.raft;
  const b = other.replica!.raft;
  const isSame = (at: number) => a.termAt(at) !== undefined && a.termAt(at) === b.termAt(at);
  let index = Math.min(a.lastIndex, b.lastIndex);
  while (index > 0 && !isSame(index)) index--;
  for (let i = 1; i <= comparedMax; i++) {
    const at = index - i;
    if (a.termAt(at) === undefined || b.termAt(at) === undefined) return;
    assert.ok(isSame(at), `${one.id} and ${other.id} share ${index} and not ${at}`);
  }
}
