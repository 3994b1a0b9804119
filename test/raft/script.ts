/**
 * A cluster of cores that does what scripts say (see play-scripts.ts), and tells all that comes of
 * it: hard states that are to be written, messages, offices.
 *
 *     members a b c [learners d]   a new cluster, 300 ms old, so that everybody may vote; without
 *                                  a leader a begins an election after 450 ms, b 510, c 570 …
 *     dozing a b c                 the same, and a leader with nothing to do dozes after 60 ms: a
 *                                  heartbeat every 400 ms, which is missed after 1200
 *     time MS                      time goes on
 *     stop a …                     they do not run (SIGSTOP), until `continue a …`
 *     campaign a                   an election without being asked
 *     propose a N                  a client's value
 *     persist a … [all]            one write of each, or all, reach the disk
 *     deliver [a>b …]              all messages, or those of these ways, in order
 *     drop [a>b …]                 they are lost
 *     settle                       delivers and persists until nothing is left to do
 *     change a voters … learners … new members
 *     hand-over a [b]              leadership goes to another one
 *     compact a INDEX              a snapshot covers the log up to there
 *     install a b                  b has fetched the snapshot of a
 *     crash a [WRITES]             so many of the writes on their way have arrived
 *     start a                      again, from its disk
 *     status [a …]                 what they are; `log a` what they have
 *     may-answer a …               whether they may answer reads
 *     wake a                       somebody wants something of it
 *     leader-lost a …              they know that the leader's machine does not answer
 */
import type { Configuration } from '../../src/raft/membership.ts';
import type { Message } from '../../src/raft/messages.ts';
import type { DozeOptions } from '../../src/raft/ready.ts';
import { doze, electionTimeoutMs, Member, type Sent } from './member.ts';

/** What `time` counts from, and how often everybody looks at the clock. */
const startMs = 1000;
const tickMs = 10;

export class ScriptedCluster {
  #members = new Map<string, Member>();
  #stopped = new Set<string>();
  #flights: Sent[] = [];
  #nowMs = startMs;
  #out: string[] = [];

  readonly #commands: Readonly<Record<string, (args: readonly string[]) => void>> = {
    members: (args) => this.#begin(configurationOf(['voters', ...args])),
    dozing: (args) => this.#begin(configurationOf(['voters', ...args]), doze),
    time: ([ms]) => this.#pass(Number(ms)),
    stop: (ids) => {
      for (const id of ids) this.#stopped.add(id);
    },
    continue: (ids) => {
      for (const id of ids) this.#stopped.delete(id);
    },
    campaign: (ids) => this.#each(ids, ({ raft }) => raft.campaign(this.#nowMs)),
    propose: ([id, data]) =>
      this.#each([id!], (member) => member.propose(Number(data), this.#nowMs)),
    persist: (args) => this.#persist(args),
    deliver: (ways) => this.#deliver(ways),
    drop: (ways) => this.#drop(ways),
    settle: () => this.#settle(),
    change: ([id, ...words]) =>
      this.#each([id!], (member) => member.reconfigure(configurationOf(words), this.#nowMs)),
    'hand-over': ([id, to]) =>
      this.#each([id!], ({ raft }) => {
        if (!raft.handOver(this.#nowMs, to)) this.#say(`${id}: to nobody`);
      }),
    compact: ([id, index]) => this.#members.get(id!)!.compact(Number(index)),
    install: ([from, to]) => {
      const { snapshot } = this.#members.get(from!)!.disk;
      this.#each([to!], (member) => member.install(snapshot, this.#nowMs));
    },
    crash: ([id, writes]) => this.#members.get(id!)!.crash(Number(writes ?? 0)),
    start: ([id]) => this.#members.get(id!)!.start(this.#nowMs),
    status: (ids) => {
      for (const member of this.#named(ids)) this.#say(statusOf(member));
    },
    log: (ids) => {
      for (const member of this.#named(ids)) this.#say(`${member.id}: ${logOf(member)}`);
    },
    wake: (ids) => this.#each(ids, ({ raft }) => raft.wake(this.#nowMs)),
    'leader-lost': (ids) => this.#each(ids, ({ raft }) => raft.leaderIsLost(this.#nowMs)),
    'may-answer': (ids) => {
      for (const { id, raft } of this.#named(ids)) {
        this.#say(`${id}: ${raft.mayAnswer(this.#nowMs) ? 'yes' : 'no'}`);
      }
    },
  };

  /** The commands of one block; answers what came of them. */
  run(commands: readonly string[]): readonly string[] {
    this.#out = [];
    for (const command of commands) {
      const [name, ...args] = command.trim().split(/\s+/);
      const act = this.#commands[name!];
      if (act === undefined) throw new Error(`unknown command ${name}`);
      act(args);
    }
    return this.#out.length === 0 ? ['nothing'] : this.#out;
  }

  #begin(configuration: Configuration, dozing?: DozeOptions): void {
    this.#members = new Map();
    this.#flights = [];
    this.#stopped = new Set();
    const ids = [...configuration.voters, ...configuration.learners];
    for (const [i, id] of ids.entries()) {
      const member = new Member(id, configuration, () => 0.5 + 0.2 * i, dozing);
      member.start(this.#nowMs);
      this.#members.set(id, member);
    }
    this.#pass(electionTimeoutMs);
  }

  #isRunning({ id, isUp }: Member): boolean {
    return isUp && !this.#stopped.has(id);
  }

  #pass(ms: number): void {
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs; ) {
      this.#nowMs = Math.min(this.#nowMs + tickMs, endMs);
      for (const member of this.#members.values()) {
        if (!this.#isRunning(member)) continue;
        member.raft.tick(this.#nowMs);
        this.#after(member);
      }
    }
  }

  #named(ids: readonly string[]): Member[] {
    if (ids.length === 0) return [...this.#members.values()];
    return ids.map((id) => this.#members.get(id)!);
  }

  #each(ids: readonly string[], act: (member: Member) => void): void {
    for (const member of this.#named(ids)) {
      act(member);
      this.#after(member);
    }
  }

  #say(line: string): void {
    this.#out.push(line);
  }

  #after(member: Member): void {
    const { role } = member.raft;
    const { hardState, noop, sent, snapshot } = member.take();
    if (hardState !== undefined) {
      this.#say(`${member.id}: ${role}, term ${hardState.term}, vote ${hardState.votedFor}`);
    }
    if (noop !== undefined) this.#say(`${member.id}: leads term ${noop.term} from ${noop.index}`);
    for (const each of sent) {
      this.#flights.push(each);
      this.#say(shown(each.message));
    }
    if (snapshot !== undefined) {
      this.#say(
        `${member.id}: needs the snapshot of ${snapshot.from} up to ${snapshot.base.index}`,
      );
    }
  }

  #persist(args: readonly string[]): void {
    const isAll = args.at(-1) === 'all';
    this.#each(isAll ? args.slice(0, -1) : args, (member) => {
      while (member.persistOne(this.#nowMs) && isAll);
    });
  }

  #take(ways: readonly string[]): Sent[] {
    const isMeant = ({ message: { from, to } }: Sent) =>
      ways.length === 0 || ways.includes(`${from}>${to}`);
    const taken = this.#flights.filter(isMeant);
    this.#flights = this.#flights.filter((sent) => !isMeant(sent));
    return taken;
  }

  #deliver(ways: readonly string[]): void {
    for (const sent of this.#take(ways)) {
      const member = this.#members.get(sent.message.to);
      if (member === undefined || !member.isUp) continue;
      if (!this.#isRunning(member)) {
        this.#flights.push(sent);
        continue;
      }
      const { truncations } = member;
      member.receive(sent, this.#nowMs);
      if (member.truncations > truncations) this.#say(`${member.id}: truncates`);
      this.#after(member);
    }
  }

  #drop(ways: readonly string[]): void {
    for (const { message } of this.#take(ways)) this.#say(`lost: ${shown(message)}`);
  }

  #settle(): void {
    const before = this.#out.length;
    const up = [...this.#members.values()].filter((member) => this.#isRunning(member));
    const isMoving = ({ message: { to } }: Sent) => !this.#stopped.has(to);
    while (this.#flights.some(isMoving) || up.some(({ writes }) => writes.length > 0)) {
      this.#deliver([]);
      for (const member of up) {
        while (member.persistOne(this.#nowMs));
        this.#after(member);
      }
    }
    // All that was said on the way is more than anybody reads.
    this.#out.length = before;
    for (const member of up) this.#say(statusOf(member));
  }
}

function configurationOf(words: readonly string[]): Configuration {
  const voters: string[] = [];
  const learners: string[] = [];
  let list = voters;
  for (const word of words) {
    if (word === 'voters') list = voters;
    else if (word === 'learners') list = learners;
    else list.push(word);
  }
  return { voters, learners };
}

function statusOf({ id, isUp, raft }: Member): string {
  if (!isUp) return `${id}: down`;
  const { role, term, lastIndex, lastTerm, persistedIndex, commitIndex } = raft;
  const log = `log ${lastIndex}/${lastTerm}, on disk ${persistedIndex}, committed ${commitIndex}`;
  return `${id}: ${role}, term ${term}, ${log}`;
}

/** Terms of the entries, from the first one in the log on. */
function logOf({ disk, raft }: Member): string {
  const terms: number[] = [];
  const first = disk.snapshot.index + 1;
  for (let index = first; index <= raft.lastIndex; index++) terms.push(raft.termAt(index)!);
  return `${first}: ${terms.join(' ')}`;
}

function shown(message: Message): string {
  const { kind, from, to, term } = message;
  const head = `${from}>${to} ${kind} term ${term}`;
  switch (message.kind) {
    case 'preVote':
    case 'vote':
      return `${head}, log ${message.lastIndex}/${message.lastTerm}`;
    case 'preVoteReply':
    case 'voteReply':
      return `${head}, ${message.isGranted ? 'granted' : 'refused'}`;
    case 'append': {
      const { prevIndex, prevTerm, lastIndex, commitIndex } = message;
      const entries = lastIndex > prevIndex ? `${prevIndex + 1} to ${lastIndex}` : 'nothing';
      return `${head}, ${entries} after ${prevIndex}/${prevTerm}, committed ${commitIndex}`;
    }
    case 'appendReply':
      return `${head}, matched ${message.matched}`;
    case 'appendRejected':
      return `${head}, ${message.prevIndex}: try ${message.hintIndex}/${message.hintTerm}`;
    case 'heartbeat':
      return `${head}, committed ${message.commitIndex}${message.isDozing ? ', dozing' : ''}`;
    case 'snapshotOffer':
      return `${head}, up to ${message.base.index}/${message.base.term}`;
    default:
      return head;
  }
}
