/**
 * The world around one coordinator, driven by lines of text: named consumers that remember what
 * they were told, a clock that only `tick` moves, and a disk whose writes can be held back.
 *
 *     enter NAME ...      JoinGroup until in: asks for a member id first, then joins with it
 *     join NAME ...       one JoinGroup; sync, heartbeat, leave, commit likewise
 *     tick MS             time goes by, timers fire at their time
 *     hold / stored / failed   writes wait from now on / the oldest one succeeds / fails
 *     restart             another coordinator takes over from the durable images
 *     options ...         a new world with these options
 *     keyed wait=MS t=N   from now on keyed delivery, with N lanes of topic t; `log` ends it
 *     silent NAME ...     whose sessions may run out from now on
 *
 * Settings are `key=value`; `id=-` is the empty member id. Answers print as they arrive. In keyed
 * delivery `lanes=a:t/0+t/1,b:-` assigns, `owned=t/0` joins, and answers show lanes.
 */

import assert from 'node:assert/strict';
import {
  type ClassicOptions,
  classicDefaults,
  type GroupEvent,
} from '../../../src/groups/classic/context.ts';
import { ClassicCoordinator } from '../../../src/groups/classic/coordinator.ts';
import type { ClassicGroup } from '../../../src/groups/classic/group.ts';
import type { JoinGroupResponse } from '../../../src/groups/classic/messages.ts';
import type { Now } from '../../../src/groups/deadlines.ts';
import { decodeGroupImage, type GroupImage } from '../../../src/groups/group-image.ts';
import { errorName } from '../../../src/protocol/error-codes.ts';
import { encodeGroupImage } from '../encode-group-image.ts';
import {
  assignmentOf,
  assignmentText,
  cooperativeSubscription,
  lanesText,
  ownedText,
} from './lane-text.ts';
import { subscription } from './subscription.ts';

const wallStartMs = 1_700_000_000_000;

interface Consumer {
  readonly name: string;
  memberId: string;
  instance: string | null;
  generation: number;
  type: string;
  protocol: string | null;
}

interface Write {
  readonly groupId: string;
  readonly image: GroupImage | null;
  readonly done: (isDurable: boolean, now: Now) => void;
}

export type Args = ReadonlyMap<string, string>;

export class World {
  out: string[] = [];
  #monotonicMs = 0;
  #ids = 0;
  #holdsWrites = false;
  #options: ClassicOptions = classicDefaults;
  #coordinator: ClassicCoordinator = this.#newCoordinator();
  readonly #consumers = new Map<string, Consumer>();
  readonly #writes: Write[] = [];
  readonly #disk = new Map<string, Buffer>();
  #keyed: { readonly waitMs: number; readonly lanes: Args } | null = null;
  #silent: readonly string[] = [];

  get now(): Now {
    return { monotonicMs: this.#monotonicMs, wallMs: wallStartMs + this.#monotonicMs };
  }

  /** Runs one line and returns nothing; what it says goes to `out`. */
  run(command: string, names: readonly string[], args: Args): void {
    const handler = this.#handlers[command];
    assert.ok(handler !== undefined, `no such command: ${command}`);
    handler(names, args);
  }

  readonly #handlers: Readonly<Record<string, (names: readonly string[], args: Args) => void>> = {
    options: (_, args) => this.#setOptions(args),
    enter: (names, args) => this.#enter(names, args),
    join: ([name], args) => this.#join(this.#consumer(name!), args),
    sync: ([name], args) => this.#sync(this.#consumer(name!), args),
    heartbeat: (names, args) => this.#heartbeat(names, args),
    leave: (names, args) => this.#leave(names, args),
    commit: ([name], args) => this.#commit(this.#consumer(name!), args),
    tick: ([ms]) => this.#tick(Number(ms)),
    hold: () => {
      this.#holdsWrites = true;
    },
    stored: () => this.#finishWrite(true),
    failed: () => this.#finishWrite(false),
    restart: (_, args) => this.#restart(args),
    keyed: (_, args) => {
      this.#keyed = { waitMs: Number(args.get('wait') ?? 1_000), lanes: args };
    },
    log: () => {
      this.#keyed = null;
    },
    silent: (names) => {
      this.#silent = names.map((name) => this.#consumer(name).memberId);
    },
    expel: ([name], args) =>
      this.#say(
        `expelled: ${this.#coordinator.expelMember(groupOf(args), this.#consumer(name!).memberId, 'lease', this.now)}`,
      ),
    unload: () => this.#coordinator.unload(this.now),
    describe: (_, args) => this.#describe(args),
    list: (_, args) => this.#list(args),
    delete: (_, args) =>
      this.#coordinator.deleteGroup(groupOf(args), this.now, (code) =>
        this.#say(`DeleteGroups ${errorName(code)}`),
      ),
    forget: (_, args) =>
      this.#say(`forgotten: ${this.#coordinator.forget(groupOf(args), this.now)}`),
    'offset-delete': ([topic], args) => this.#offsetDelete(topic!, args),
    'offset-holder': (_, args) => this.#coordinator.restoreOffsetsHolder(groupOf(args), this.now),
    facts: (_, args) => this.#facts(args),
  };

  #say(line: string): void {
    this.out.push(line);
  }

  #consumer(name: string): Consumer {
    let consumer = this.#consumers.get(name);
    if (consumer === undefined) {
      const blank = { instance: null, generation: -1, type: 'consumer', protocol: null };
      consumer = { name, memberId: '', ...blank };
      this.#consumers.set(name, consumer);
    }
    return consumer;
  }

  #newCoordinator(): ClassicCoordinator {
    return new ClassicCoordinator(this.#options, {
      uuid: () => String(++this.#ids),
      persist: (groupId, image, done) => {
        this.#say(`* write ${groupId}: ${imageText(image, this.#assignmentText)}`);
        this.#writes.push({ groupId, image, done });
        if (!this.#holdsWrites) this.#finishWrite(true);
      },
      onEvent: (group, event) => {
        const lines = this.#keyed === null ? null : keyedEventText(event);
        for (const line of lines ?? eventText(group, event)) this.#say(`* ${line}`);
      },
      keyedRules: () =>
        this.#keyed && {
          rebalanceWaitMs: this.#keyed.waitMs,
          laneCount: (topic) => Number(this.#keyed?.lanes.get(topic) ?? 0),
          keepsSilent: ({ memberId }) => this.#silent.includes(memberId),
        },
    });
  }

  readonly #assignmentText = (bytes: Buffer): string =>
    this.#keyed === null ? bytes.toString() : assignmentText(bytes);

  /** A new world, in which consumers remember their ids. */
  #setOptions(args: Args): void {
    this.#options = { ...classicDefaults, ...numbers(args) };
    this.#holdsWrites = false;
    this.#keyed = null;
    this.#silent = [];
    this.#disk.clear();
    this.#restart(new Map());
  }

  #finishWrite(isDurable: boolean): void {
    const write = this.#writes.shift();
    if (write === undefined) {
      this.#say('no write is waiting');
      return;
    }
    const { groupId, image, done } = write;
    if (isDurable && image === null) this.#disk.delete(groupId);
    if (isDurable && image !== null) this.#disk.set(groupId, encodeGroupImage(image));
    done(isDurable, this.now);
  }

  #restart(args: Args): void {
    this.#options = { ...this.#options, ...numbers(args) };
    this.#writes.length = 0;
    this.#coordinator = this.#newCoordinator();
    for (const [groupId, bytes] of this.#disk) {
      this.#coordinator.restore(groupId, decodeGroupImage(bytes), this.now);
    }
  }

  #tick(ms: number): void {
    const until = this.#monotonicMs + ms;
    for (;;) {
      const next = this.#coordinator.nextDeadlineMs();
      if (next > until) break;
      this.#monotonicMs = Math.max(this.#monotonicMs, next);
      const before = this.out.length;
      this.#coordinator.expire(this.now);
      if (this.out.length > before) this.out.splice(before, 0, `at ${this.#monotonicMs}`);
    }
    this.#monotonicMs = until;
  }

  /** Several consumers at once, each with its member id asked for first where it needs one. */
  #enter(names: readonly string[], args: Args): void {
    for (const name of names) {
      const consumer = this.#consumer(name);
      const before = this.out.length;
      const needsId = Number(args.get('v') ?? 9) >= 4 && idOf(consumer, args) === '';
      if (needsId) this.#join(consumer, args);
      this.out.length = before;
      const withoutId = [...args].filter(([key]) => key !== 'id' || !needsId);
      this.#join(consumer, new Map(withoutId));
    }
  }

  #join(consumer: Consumer, args: Args): void {
    if (args.has('instance')) consumer.instance = args.get('instance')!;
    const topics = (args.get('topics') ?? 't').split(',');
    const names = (args.get('protocols') ?? 'range').split(',').filter((name) => name !== '');
    let answers = 0;
    this.#coordinator.joinGroup(
      {
        apiVersion: Number(args.get('v') ?? 9),
        groupId: groupOf(args),
        memberId: idOf(consumer, args),
        groupInstanceId: consumer.instance,
        clientId: consumer.name,
        clientHost: '/127.0.0.1',
        protocolType: args.get('type') ?? consumer.type,
        protocols: names.map((name) => ({
          name,
          metadata: args.has('raw')
            ? Buffer.from(args.get('raw')!)
            : args.has('owned')
              ? cooperativeSubscription(topics, args.get('owned')!, consumer.generation)
              : subscription(topics, args.get('meta') ?? ''),
        })),
        sessionTimeoutMs: Number(args.get('session') ?? 10_000),
        rebalanceTimeoutMs: Number(args.get('rebalance') ?? 60_000),
        reason: args.get('reason') ?? null,
      },
      this.now,
      (response) => {
        assert.equal(++answers, 1, 'one answer per request');
        this.#say(`${consumer.name} <- JoinGroup ${joinText(response, this.#keyed !== null)}`);
        if (response.errorCode === 79) consumer.memberId = response.memberId;
        if (response.errorCode !== 0) return;
        consumer.memberId = response.memberId;
        consumer.generation = response.generationId;
        consumer.type = response.protocolType ?? consumer.type;
        consumer.protocol = response.protocolName;
      },
    );
  }

  #sync(consumer: Consumer, args: Args): void {
    const plan = args.get('assign') ?? args.get('lanes') ?? '';
    const pairs = plan.split(',').filter((pair) => pair !== '');
    let answers = 0;
    this.#coordinator.syncGroup(
      {
        apiVersion: Number(args.get('v') ?? 5),
        groupId: groupOf(args),
        generationId: Number(args.get('gen') ?? consumer.generation),
        memberId: idOf(consumer, args),
        groupInstanceId: args.get('instance') ?? consumer.instance,
        protocolType: nullable(args.get('type') ?? consumer.type),
        protocolName: nullable(args.get('protocol') ?? consumer.protocol ?? '-'),
        assignments: pairs.map((pair) => {
          const [name, value] = pair.split(':');
          const assignment = args.has('lanes') ? assignmentOf(value!) : Buffer.from(value!);
          return { memberId: this.#consumers.get(name!)?.memberId ?? name!, assignment };
        }),
      },
      this.now,
      ({ errorCode, protocolType, protocolName, assignment }) => {
        assert.equal(++answers, 1, 'one answer per request');
        const detail =
          errorCode === 0
            ? ` ${protocolType}/${protocolName} assignment=${this.#assignmentText(assignment)}`
            : '';
        this.#say(`${consumer.name} <- SyncGroup ${errorName(errorCode)}${detail}`);
      },
    );
  }

  #heartbeat(names: readonly string[], args: Args): void {
    for (const name of names) {
      const consumer = this.#consumer(name);
      const code = this.#coordinator.heartbeat(
        {
          groupId: groupOf(args),
          generationId: Number(args.get('gen') ?? consumer.generation),
          memberId: idOf(consumer, args),
          groupInstanceId: args.get('instance') ?? consumer.instance,
        },
        this.now,
      );
      this.#say(`${name} <- Heartbeat ${errorName(code)}`);
    }
  }

  #leave(names: readonly string[], args: Args): void {
    const members = names.map((name) => {
      const consumer = this.#consumer(name);
      const groupInstanceId = args.get('instance') ?? consumer.instance;
      return {
        memberId: idOf(consumer, args),
        groupInstanceId,
        reason: args.get('reason') ?? null,
      };
    });
    this.#coordinator.leaveGroup({ groupId: groupOf(args), members }, this.now, (response) => {
      const each = response.members.map(({ memberId, groupInstanceId, errorCode }) => {
        const instance = groupInstanceId === null ? '' : `(${groupInstanceId})`;
        return ` ${memberId}${instance}=${errorName(errorCode)}`;
      });
      this.#say(`LeaveGroup ${errorName(response.errorCode)}${each.join('')}`);
    });
  }

  #commit(consumer: Consumer, args: Args): void {
    const code = this.#coordinator.validateOffsetCommit(
      {
        apiVersion: Number(args.get('v') ?? 9),
        groupId: groupOf(args),
        generationId: Number(args.get('gen') ?? consumer.generation),
        memberId: idOf(consumer, args),
        groupInstanceId: args.get('instance') ?? consumer.instance,
        isTransactional: args.has('txn'),
      },
      this.now,
    );
    this.#say(`${consumer.name} <- OffsetCommit ${errorName(code)}`);
  }

  #describe(args: Args): void {
    const group = this.#coordinator.describe(groupOf(args), Number(args.get('v') ?? 6));
    const { errorCode, errorMessage, groupState, protocolType, protocolData } = group;
    const error = errorMessage === null ? '' : ` "${errorMessage}"`;
    this.#say(
      `${errorName(errorCode)}${error} ${groupState} ` +
        `type=${protocolType} protocol=${protocolData}`,
    );
    for (const member of group.members) {
      const instance = member.groupInstanceId === null ? '' : ` instance=${member.groupInstanceId}`;
      this.#say(
        `  ${member.memberId}${instance} ${member.clientId}@${member.clientHost} ` +
          `metadata=${member.memberMetadata.length} ` +
          `assignment=${this.#assignmentText(member.memberAssignment)}`,
      );
    }
  }

  #list(args: Args): void {
    const names = (key: string) => (args.get(key) ?? '').split(',').filter((name) => name !== '');
    const filter = { states: names('states'), types: names('types') };
    for (const group of this.#coordinator.list(filter)) {
      if (group === undefined) continue;
      this.#say(`${group.groupId} ${group.groupState} ${group.protocolType} ${group.groupType}`);
    }
  }

  #offsetDelete(topic: string, args: Args): void {
    const code = this.#coordinator.validateOffsetDelete(groupOf(args));
    const isSubscribed = this.#coordinator.isSubscribedToTopic(groupOf(args), topic);
    this.#say(`OffsetDelete ${errorName(code)} ${topic} subscribed=${isSubscribed}`);
  }

  #facts(args: Args): void {
    const facts = this.#coordinator.offsetFacts(groupOf(args));
    if (facts === null) {
      this.#say('unknown');
      return;
    }
    const { protocolType, isEmpty, isStable, stateTimestampMs, subscribedTopics } = facts;
    const topics = subscribedTopics === null ? 'unknown' : `[${[...subscribedTopics].join(',')}]`;
    this.#say(
      `type=${protocolType} empty=${isEmpty} stable=${isStable} ` +
        `since=${stateTimestampMs - wallStartMs} topics=${topics}`,
    );
  }
}

function numbers(args: Args): Record<string, number> {
  return Object.fromEntries([...args].map(([key, value]) => [key, Number(value)]));
}

function groupOf(args: Args): string {
  return nullable(args.get('group') ?? 'g') ?? '';
}

function idOf(consumer: Consumer, args: Args): string {
  return nullable(args.get('id') ?? (consumer.memberId || '-')) ?? '';
}

function nullable(text: string): string | null {
  return text === '-' ? null : text;
}

function joinText(response: JoinGroupResponse, showsOwned: boolean): string {
  const { errorCode, memberId, generationId, leader, skipAssignment } = response;
  const protocol = `${response.protocolType}/${response.protocolName}`;
  if (errorCode !== 0) {
    const name = response.protocolName === null ? '' : ` protocol="${response.protocolName}"`;
    return `${errorName(errorCode)} id=${memberId}${name}`;
  }
  const members = response.members.map((member) => {
    const instance = member.groupInstanceId === null ? '' : `(${member.groupInstanceId})`;
    const owned = showsOwned ? `[${ownedText(member.metadata)}]` : '';
    return `${member.memberId}${instance}${owned}`;
  });
  const list = members.length === 0 ? '' : ` members=${members.join(',')}`;
  const skip = skipAssignment ? ' skip-assignment' : '';
  return `NONE id=${memberId} gen=${generationId} ${protocol} leader=${leader}${skip}${list}`;
}

function imageText(image: GroupImage | null, assignmentText: (bytes: Buffer) => string): string {
  if (image === null) return 'deleted';
  const { generationId, protocolType, protocolName, leaderId } = image;
  const members = image.members.map(
    ({ memberId, assignment }) => `${memberId}=${assignmentText(assignment)}`,
  );
  const protocol = `${protocolType}/${protocolName}`;
  return `gen=${generationId} ${protocol} leader=${leaderId} [${members.join(' ')}]`;
}

function eventText(group: ClassicGroup, event: GroupEvent): string[] {
  switch (event.kind) {
    case 'memberAdded':
      return [`added: ${event.reason}`];
    case 'memberRemoved':
      return [`removed ${event.member.memberId}: ${event.cause} ${event.reason}`.trimEnd()];
    case 'memberReplaced':
      return [`removed ${event.former.memberId}: replaced`, 'added: replaces its former self'];
    case 'rebalanceStarted':
      return [`rebalance: ${event.reason}`];
    case 'persistFailed':
      return [`could not store: ${event.what}`];
    case 'memberRejoined':
    case 'restored':
      return [];
    default:
      return [`${event.kind} gen=${group.generationId}`];
  }
}

/** What only keyed delivery listens for; null for the rest. */
function keyedEventText(event: GroupEvent): string[] | null {
  switch (event.kind) {
    case 'memberRejoined': {
      const asked = event.member.isAskedToRejoin ? ', asked to' : '';
      const [before, after] = [event.before, event.after].map(ownedText);
      return [`${event.member.memberId} rejoined: ${before} => ${after}${asked}`];
    }
    case 'memberReplaced':
      return [`${event.former.memberId} replaced by ${event.member.memberId}`];
    case 'assignmentPlanned': {
      const each = [...event.assignments].map(([id, lanes]) => `${id}=${lanesText(lanes)}`);
      return [`planned ${each.join(' ')}`];
    }
    case 'restored':
      return ['restored'];
    default:
      return null;
  }
}
