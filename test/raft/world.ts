/**
 * A cluster of nothing but cores: disks, a network and clocks as bad as one seed makes them, and
 * after each event everything that must always hold (figure 3 of the Raft paper, and what leases
 * promise).
 */
import assert from 'node:assert/strict';
import { seededRandom } from '../../src/core/random.ts';
import type { Configuration } from '../../src/raft/membership.ts';
import { Role } from '../../src/raft/raft.ts';
import type { DozeOptions } from '../../src/raft/ready.ts';
import { doze, type Entry, electionTimeoutMs, Member, type Sent } from './member.ts';

/** How bad the world is: chances that something happens to a message, or in one step. */
export interface Faults {
  readonly loss: number;
  readonly duplication: number;
  readonly crash: number;
  /** Of one that is down. */
  readonly restart: number;
  readonly partition: number;
  readonly pause: number;
  /** That a step is one of the disk: few make it slow. */
  readonly sync: number;
  readonly handOver: number;
  /** The longest that a message is under way. */
  readonly delayMsMax: number;
}

/** Worlds of many kinds: each fault is absent in some, and rife in others. */
function faultsFrom(random: () => number): Faults {
  const pick = (...values: number[]) => values[Math.floor(random() * values.length)]!;
  return {
    loss: pick(0, 0, 0.02, 0.1, 0.3),
    duplication: pick(0, 0.05, 0.2),
    crash: pick(0, 0.001, 0.005, 0.02),
    restart: pick(0.02, 0.1, 0.5),
    partition: pick(0, 0.001, 0.003, 0.01),
    pause: pick(0, 0.001, 0.003),
    sync: pick(0.04, 0.15, 0.3),
    handOver: pick(0, 0.002, 0.02),
    delayMsMax: pick(5, 100, 100, 600),
  };
}

const calm: Faults = {
  ...{ loss: 0, duplication: 0, crash: 0, restart: 1, partition: 0, pause: 0 },
  ...{ sync: 0.3, handOver: 0, delayMsMax: 5 },
};

export interface Totals {
  elections: number;
  truncations: number;
  snapshots: number;
  crashes: number;
  commits: number;
  reconfigurations: number;
  handOvers: number;
  /** Steps in which a leader dozed. */
  dozing: number;
}

export const noTotals: Totals = {
  ...{ elections: 0, truncations: 0, snapshots: 0, crashes: 0, commits: 0 },
  ...{ reconfigurations: 0, handOvers: 0, dozing: 0 },
};

/** A member and what only the world knows of it. */
class Inhabitant {
  readonly member: Member;
  /** Its clock runs at this speed, and began at this time. */
  readonly #rate: number;
  readonly #startMs: number;
  /** The process is stopped until then (SIGSTOP). */
  pausedUntilMs = 0;
  applied = 0;
  lastCommit = 0;

  constructor(member: Member, random: () => number) {
    this.member = member;
    this.#rate = 0.98 + 0.04 * random();
    this.#startMs = 1000 * random();
  }

  clock(nowMs: number): number {
    return this.#startMs + nowMs * this.#rate;
  }
}

export class RaftWorld {
  readonly totals: Totals = { ...noTotals };
  readonly #random: () => number;
  readonly #all = new Map<string, Inhabitant>();
  readonly #doze: DozeOptions | undefined;
  #faults: Faults;
  /** Clients want nothing more. */
  #isHealed = false;
  #nowMs = 0;
  #flights: { readonly atMs: number; readonly sent: Sent }[] = [];
  /** Snapshots on their way. */
  #installs: { readonly atMs: number; readonly from: string; readonly to: string }[] = [];
  readonly #leaders = new Map<number, string>();
  /** What was applied anywhere, by index: it is so everywhere and for ever. */
  readonly #committed: Entry[] = [];
  /** The term in which that happened. */
  readonly #committedIn: number[] = [];
  #acknowledged = 0;
  #nextData = 1;
  /** Pairs `from>to` of which the second hears nothing from the first. */
  #cut = new Set<string>();
  #cutEndMs = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed).next;
    this.#faults = faultsFrom(this.#random);
    this.#doze = this.#random() < 0.3 ? doze : undefined;
    const names = ['a', 'b', 'c', 'd', 'e'].slice(0, this.#random() < 0.6 ? 3 : 5);
    const voters = names.slice(0, this.#random() < 0.2 ? 2 : names.length);
    for (const name of names) {
      const member = new Member(name, { voters, learners: [] }, this.#random, this.#doze);
      this.#all.set(name, new Inhabitant(member, this.#random));
      this.#start(this.#all.get(name)!);
    }
  }

  #start(one: Inhabitant): void {
    one.member.start(one.clock(this.#nowMs));
    one.applied = one.member.disk.snapshot.index;
    one.lastCommit = one.applied;
  }

  /** One event, and what follows from it at once. */
  step(): void {
    this.#nowMs += this.#random() * 8;
    const all = [...this.#all.values()];
    const one = all[Math.floor(this.#random() * all.length)]!;
    const chance = this.#random();
    this.#disturb(one);
    const { member } = one;
    if (!member.isUp) {
      if (chance < this.#faults.restart) this.#start(one);
      return;
    }
    if (this.#nowMs < one.pausedUntilMs) return;
    const nowMs = one.clock(this.#nowMs);
    if (chance < this.#faults.sync) member.persistOne(nowMs);
    else if (this.#isHealed) member.raft.tick(nowMs);
    else this.#act(one, nowMs);
    this.#after(one);
    this.#deliver();
    this.#install();
    this.#checkReads();
    if (member.isUp && member.raft.role === Role.leader && member.raft.isDozing) {
      this.totals.dozing++;
    }
  }

  #act(one: Inhabitant, nowMs: number): void {
    const { raft } = one.member;
    const chance = this.#random();
    if (chance < 0.3) {
      const hasRoom = raft.mayPropose && raft.lastIndex - raft.commitIndex < 40;
      // Where leaders doze clients want something now and then only, or to read.
      if (this.#doze !== undefined && this.#random() < 0.97) {
        if (this.#random() < 0.05) raft.wake(nowMs);
        else if (this.#random() < 0.01) raft.leaderIsLost(nowMs);
        raft.tick(nowMs);
      } else if (hasRoom) one.member.propose(this.#nextData++, nowMs);
    } else if (chance < 0.31) {
      this.#reconfigure(one.member, nowMs);
    } else if (chance < 0.31 + this.#faults.handOver) {
      if (raft.handOver(nowMs)) this.totals.handOvers++;
    } else if (chance < 0.35) {
      this.#compact(one);
    } else {
      raft.tick(nowMs);
    }
  }

  #disturb(one: Inhabitant): void {
    const { crash, partition, pause } = this.#faults;
    const { member } = one;
    if (member.isUp && this.#random() < crash) this.#crash(member);
    if (this.#random() < pause) {
      one.pausedUntilMs = this.#nowMs + this.#random() * 3 * electionTimeoutMs;
    }
    if (this.#nowMs > this.#cutEndMs) this.#cut = new Set();
    if (this.#random() < partition) this.#partition();
    if (this.#random() < crash / 10) this.#failPower();
  }

  /** Some ways are cut, each in one direction; or all ways of one member, rather the leader. */
  #partition(): void {
    this.#cutEndMs = this.#nowMs + this.#random() * 6 * electionTimeoutMs;
    const chance = this.#random() < 0.5 ? 0 : 0.3;
    const lone = this.#random() < 0.7 ? this.#someLeader() : undefined;
    for (const from of this.#all.keys()) {
      for (const to of this.#all.keys()) {
        const isCut = from === lone || to === lone || this.#random() < chance;
        if (isCut) this.#cut.add(`${from}>${to}`);
      }
    }
  }

  #someLeader(): string | undefined {
    for (const { member } of this.#all.values()) {
      if (member.isUp && member.raft.role === Role.leader) return member.id;
    }
    return undefined;
  }

  /** All at once: what was on its way to a disk may be lost everywhere. */
  #failPower(): void {
    for (const { member } of this.#all.values()) if (member.isUp) this.#crash(member);
  }

  #crash(member: Member): void {
    member.crash(Math.floor(this.#random() * (member.writes.length + 1)));
    this.totals.crashes++;
  }

  #reconfigure(member: Member, nowMs: number): void {
    if (!member.raft.mayReconfigure) return;
    const names = [...this.#all.keys()];
    const name = names[Math.floor(this.#random() * names.length)]!;
    const { voters, learners } = member.raft.configuration;
    const without = (list: readonly string[]) => list.filter((other) => other !== name);
    let next: Configuration;
    if (voters.includes(name)) {
      if (voters.length <= 2) return;
      next = { voters: without(voters), learners: [...learners, name] };
    } else if (learners.includes(name)) {
      next = { voters: [...voters, name], learners: without(learners) };
    } else next = { voters, learners: [...learners, name] };
    member.reconfigure(next, nowMs);
    this.totals.reconfigurations++;
  }

  #compact({ member, applied }: Inhabitant): void {
    const { index: from } = member.disk.snapshot;
    const index = Math.floor(from + (applied - from) * this.#random());
    if (index > from) member.compact(index);
  }

  /** What is to be done after each call. */
  #after(one: Inhabitant): void {
    const { member } = one;
    const truncations = member.truncations;
    const { noop, sent, snapshot } = member.take();
    this.totals.truncations += member.truncations - truncations;
    if (noop !== undefined) this.#onLeader(member, noop.term);
    for (const each of sent) this.#post(each);
    const isUnderWay = this.#installs.some(({ to }) => to === member.id);
    if (snapshot !== undefined && !isUnderWay) {
      const atMs = this.#nowMs + this.#random() * 100;
      this.#installs.push({ atMs, from: snapshot.from, to: member.id });
    }
    this.#apply(one);
  }

  #post(sent: Sent): void {
    const { loss, duplication, delayMsMax } = this.#faults;
    if (this.#isCut(sent.message)) return;
    let copies = this.#random() < loss ? 0 : 1;
    if (this.#random() < duplication) copies++;
    for (; copies > 0; copies--) {
      this.#flights.push({ atMs: this.#nowMs + this.#random() ** 3 * delayMsMax, sent });
    }
  }

  #isCut({ from, to }: { readonly from: string; readonly to: string }): boolean {
    return this.#cut.has(`${from}>${to}`);
  }

  #deliver(): void {
    const due = this.#flights.filter(({ atMs }) => atMs <= this.#nowMs);
    this.#flights = this.#flights.filter(({ atMs }) => atMs > this.#nowMs);
    for (const { sent } of due) {
      const one = this.#all.get(sent.message.to)!;
      if (!one.member.isUp) continue;
      if (this.#nowMs < one.pausedUntilMs) {
        // It lies in its socket.
        this.#flights.push({ atMs: one.pausedUntilMs, sent });
        continue;
      }
      const { truncations } = one.member;
      one.member.receive(sent, one.clock(this.#nowMs));
      this.totals.truncations += one.member.truncations - truncations;
      this.#after(one);
    }
  }

  /** The snapshot that arrives may be another one than was offered. */
  #install(): void {
    const due = this.#installs.filter(({ atMs }) => atMs <= this.#nowMs);
    this.#installs = this.#installs.filter(({ atMs }) => atMs > this.#nowMs);
    for (const { from, to } of due) {
      const { snapshot } = this.#all.get(from)!.member.disk;
      const one = this.#all.get(to)!;
      const { isUp } = one.member;
      const isOf = isUp && snapshot.index > one.member.raft.commitIndex;
      if (!isOf || this.#isCut({ from, to }) || this.#random() < this.#faults.loss) continue;
      // What it lacks may have come by another way meanwhile.
      if (one.member.raft.termAt(snapshot.index) === snapshot.term) continue;
      one.member.install(snapshot, one.clock(this.#nowMs));
      one.applied = snapshot.index;
      one.lastCommit = snapshot.index;
      this.totals.snapshots++;
      this.#after(one);
    }
  }

  /** What is committed and on the own disk is applied. */
  #apply(one: Inhabitant): void {
    const { raft, entries } = one.member;
    assert.ok(raft.commitIndex >= one.lastCommit, 'the commit index never falls');
    one.lastCommit = raft.commitIndex;
    const end = Math.min(raft.commitIndex, raft.persistedIndex);
    for (let index = one.applied + 1; index <= end; index++) {
      const known = this.#committed[index];
      if (known === undefined) {
        this.#committed[index] = entries[index]!;
        this.#committedIn[index] = raft.term;
        this.totals.commits++;
      } else assert.deepEqual(entries[index], known, `state machine safety at ${index} (figure 3)`);
      // A leader answers what it applies.
      if (raft.role === Role.leader) this.#acknowledged = Math.max(this.#acknowledged, index);
    }
    one.applied = Math.max(one.applied, end);
  }

  #onLeader(member: Member, term: number): void {
    const known = this.#leaders.get(term);
    assert.ok(known === undefined || known === member.id, `election safety in term ${term}`);
    this.#leaders.set(term, member.id);
    this.totals.elections++;
    for (let index = member.disk.snapshot.index + 1; index < this.#committed.length; index++) {
      // Late votes may make a leader of a term that is over.
      if (this.#committedIn[index]! >= term) continue;
      const own = member.entries[index];
      assert.deepEqual(own, this.#committed[index], `leader completeness at ${index} (figure 3)`);
    }
  }

  /** Whoever may answer reads has all that anybody was told (thesis, section 6.4). */
  #checkReads(): void {
    for (const one of this.#all.values()) {
      const { member, pausedUntilMs } = one;
      if (!member.isUp || this.#nowMs < pausedUntilMs) continue;
      if (!member.raft.mayAnswer(one.clock(this.#nowMs))) continue;
      assert.ok(
        member.raft.commitIndex >= this.#acknowledged,
        `${member.id} reads what is current`,
      );
    }
  }

  /** Where two logs have an entry of the same index and term, all before it is the same. */
  checkLogs(): void {
    for (const { member: a } of this.#all.values()) {
      for (const { member: b } of this.#all.values()) {
        let isSame = false;
        const from = Math.max(a.disk.snapshot.index, b.disk.snapshot.index) + 1;
        for (let i = Math.min(a.entries.length, b.entries.length) - 1; i >= from; i--) {
          isSame ||= a.entries[i]?.term === b.entries[i]?.term;
          if (isSame) assert.deepEqual(a.entries[i], b.entries[i], `log matching at ${i}`);
        }
      }
    }
  }

  /** From now on nothing fails, and clients want nothing more. */
  heal(): void {
    this.#faults = calm;
    this.#isHealed = true;
    this.#cut = new Set();
    for (const one of this.#all.values()) if (!one.member.isUp) this.#start(one);
  }

  /** Somebody leads, and every member of the group has applied all that there is. */
  get isSettled(): boolean {
    for (const one of this.#all.values()) {
      const { raft } = one.member;
      if (!raft.mayAnswer(one.clock(this.#nowMs)) || raft.commitIndex < raft.lastIndex) continue;
      const { voters, learners } = raft.configuration;
      return [...voters, ...learners].every((id) => this.#all.get(id)!.applied === one.applied);
    }
    return false;
  }
}
