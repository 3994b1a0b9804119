import type { Settings } from '../config/settings.ts';
import { BytesError } from '../core/bytes.ts';
import { type ClassicPorts, classicDefaults, type GroupEvent } from '../groups/classic/context.ts';
import { ClassicCoordinator } from '../groups/classic/coordinator.ts';
import type { ClassicGroup } from '../groups/classic/group.ts';
import type { Now } from '../groups/deadlines.ts';
import { decodeGroupImage, type GroupImage } from '../groups/group-image.ts';
import type { Broker } from './broker.ts';
import type { RequestContext } from './handler.ts';
import { MemberConnections } from './member-connections.ts';
import { PacedAnswers } from './paced-answers.ts';
import { StoredGroups } from './stored-groups.ts';

/** Timers are looked at no more often than this. */
const timerMsMin = 1;
const timerMsMax = 60_000;

/** Who follows the membership of groups, and says which of them are in keyed delivery. */
export type GroupFollower = Pick<ClassicPorts, 'onEvent' | 'keyedRules'>;

/**
 * The group coordinator of this node: gives the pure coordinator its clock, its timer and its
 * place in the journal. Every call goes through `run`, which sets the timer anew.
 */
export class Groups {
  readonly #broker: Broker;
  readonly #follower: GroupFollower;
  #coordinator: ClassicCoordinator;
  #isLoaded = false;
  readonly #answers: PacedAnswers;
  readonly #stored: StoredGroups;
  readonly connections = new MemberConnections();
  #cancelTimer: (() => void) | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  #unloaded = false;

  constructor(broker: Broker, follower: GroupFollower = {}) {
    this.#broker = broker;
    this.#answers = new PacedAnswers(broker.clock);
    this.#stored = new StoredGroups(broker.clock, broker.replica);
    this.#follower = follower;
    this.#coordinator = this.#makeCoordinator();
    if (broker.replica.isLeader) this.#load();
    broker.replica.listen({
      onLeading: () => this.#load(),
      onFollowing: () => this.#unload(),
    });
  }

  /** Whether this node is the coordinator of all groups, at this moment. */
  get isCoordinator(): boolean {
    return this.#isLoaded && this.#broker.replica.mayAnswer;
  }

  #makeCoordinator(): ClassicCoordinator {
    const broker = this.#broker;
    const follower = this.#follower;
    return new ClassicCoordinator(optionsFrom(broker.staticSettings), {
      uuid: () => uuid(broker.random.bytes(16)),
      persist: (groupId, image, done) => this.#persist(groupId, image, done),
      onEvent: (group, event) => {
        this.#followMembers(group, event);
        follower.onEvent?.(group, event);
      },
      keyedRules: (groupId) => follower.keyedRules?.(groupId) ?? null,
    });
  }

  /** Takes all groups over as they are in the state: their members need not notice. */
  #load(): void {
    this.#isLoaded = true;
    this.#restore();
  }

  /** Another node is the coordinator: those who wait here are told to look for it. */
  #unload(): void {
    this.#isLoaded = false;
    this.#cancelTimer?.();
    this.#timerMs = Number.POSITIVE_INFINITY;
    this.#coordinator.unload(this.now());
    this.#coordinator = this.#makeCoordinator();
  }

  now(): Now {
    const { clock } = this.#broker;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }

  /** Asks the coordinator something, at the present time. */
  run<T>(ask: (coordinator: ClassicCoordinator, now: Now) => T): T {
    const result = ask(this.#coordinator, this.now());
    this.#setTimer();
    return result;
  }

  /** A member of that name, if there is one, has spoken on this connection. */
  heardFrom(context: RequestContext, groupId: string, memberId: string): void {
    if (!this.#coordinator.hasMember(groupId, memberId)) return;
    this.connections.open(context);
    this.connections.note(context.client.connectionId, groupId, memberId);
    this.#broker.keyed.noteClient(groupId, memberId, context.client);
  }

  /** For answers that may become due together with those of a whole group. */
  paced<T>(answer: (response: T) => void): (response: T) => void {
    return this.#answers.paced(answer);
  }

  /** The broker stops: parked members are told to look for another coordinator. */
  unload(): void {
    this.#unloaded = true;
    this.#unload();
  }

  #followMembers({ groupId, members }: ClassicGroup, event: GroupEvent): void {
    switch (event.kind) {
      case 'memberRemoved':
        this.connections.forget(groupId, event.member.memberId);
        break;
      case 'memberReplaced':
        this.connections.forget(groupId, event.former.memberId);
        break;
      case 'restored':
        for (const memberId of members.keys()) this.connections.restore(groupId, memberId);
        break;
      default:
    }
  }

  #restore(): void {
    const { state } = this.#broker.replica;
    const now = this.now();
    for (const [groupId, image] of state.groupImages) {
      this.#coordinator.restore(groupId, decode(groupId, image), now);
    }
    for (const groupId of [...state.offsets.groups(), ...state.keyed.groups()]) {
      this.#coordinator.restoreOffsetsHolder(groupId, now);
    }
    this.#setTimer();
  }

  #persist(
    groupId: string,
    image: GroupImage | null,
    done: (isDurable: boolean, now: Now) => void,
  ): void {
    this.#stored.store(groupId, image, (isDurable) => {
      done(isDurable, this.now());
      this.#setTimer();
    });
  }

  #setTimer(): void {
    if (this.#unloaded) return;
    const nextMs = this.#coordinator.nextDeadlineMs();
    // A timer that comes too early looks again; only an earlier deadline needs a new one.
    if (nextMs >= this.#timerMs) return;
    this.#cancelTimer?.();
    this.#timerMs = nextMs;
    const { clock } = this.#broker;
    const delayMs = Math.min(Math.max(nextMs - clock.monotonicMs(), timerMsMin), timerMsMax);
    this.#cancelTimer = clock.after(delayMs, () => {
      this.#timerMs = Number.POSITIVE_INFINITY;
      this.#coordinator.expire(this.now());
      this.#setTimer();
    });
  }
}

function optionsFrom(settings: Settings) {
  return {
    ...classicDefaults,
    groupSizeMax: settings['group.max.size'],
    sessionTimeoutMsMin: settings['group.min.session.timeout.ms'],
    sessionTimeoutMsMax: settings['group.max.session.timeout.ms'],
    initialRebalanceDelayMs: settings['group.initial.rebalance.delay.ms'],
  };
}

function decode(groupId: string, image: Buffer): GroupImage {
  try {
    return decodeGroupImage(image);
  } catch (error) {
    if (!(error instanceof BytesError)) throw error;
    throw new BytesError(`the stored image of group ${groupId}: ${error.message}`);
  }
}

function uuid(bytes: Buffer): string {
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
  return [...parts, hex.slice(20)].join('-');
}
