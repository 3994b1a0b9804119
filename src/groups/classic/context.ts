import { assert } from '../../core/assert.ts';
import type { TopicPartitions } from '../consumer-protocol.ts';
import { Deadlines, type Now } from '../deadlines.ts';
import type { GroupImage } from '../group-image.ts';
import type { ClassicGroup } from './group.ts';
import type { ClassicMember } from './member.ts';
import type { Respond } from './messages.ts';

/** Limits and times of the classic coordinator. Where Kafka has a setting, its name stands here. */
export interface ClassicOptions {
  /** `group.max.size`: members per group. */
  readonly groupSizeMax: number;
  /** `group.min.session.timeout.ms` */
  readonly sessionTimeoutMsMin: number;
  /** `group.max.session.timeout.ms` */
  readonly sessionTimeoutMsMax: number;
  /** `group.initial.rebalance.delay.ms`: how long an empty group waits for more members. */
  readonly initialRebalanceDelayMs: number;
  /** How long a new member's parked JoinGroup is held before it must ask again. */
  readonly newMemberJoinTimeoutMs: number;
  /** Ids per group that were given out and not used; the oldest makes room for a new one. */
  readonly pendingJoinsMax: number;
  /** Groups in all; beyond it nobody can make a new one. */
  readonly groupsMax: number;
}

export const classicDefaults: ClassicOptions = {
  groupSizeMax: 10_000,
  sessionTimeoutMsMin: 6_000,
  sessionTimeoutMsMax: 1_800_000,
  initialRebalanceDelayMs: 3_000,
  newMemberJoinTimeoutMs: 300_000,
  pendingJoinsMax: 10_000,
  groupsMax: 1_000_000,
};

/** Why a member is no longer in its group. */
export type RemovalCause =
  | 'left'
  | 'session timeout'
  | 'did not rejoin'
  | 'did not sync'
  | 'group is full'
  | 'expelled';

/** What happened, for logs, metrics and for whoever follows the membership of groups. */
export type GroupEvent =
  | { readonly kind: 'memberAdded'; readonly member: ClassicMember; readonly reason: string }
  | {
      readonly kind: 'memberRemoved';
      readonly member: ClassicMember;
      readonly cause: RemovalCause;
      readonly reason: string;
    }
  | {
      /** JoinGroup of a member that is known: what it says of itself may be new. */
      readonly kind: 'memberRejoined';
      readonly member: ClassicMember;
      /** The metadata of the group's protocol, as `ownedPartitions` reads it. */
      readonly before: Buffer;
      readonly after: Buffer;
    }
  | {
      /** A static member came back under a new id, which holds the place of the former one now. */
      readonly kind: 'memberReplaced';
      readonly former: ClassicMember;
      readonly member: ClassicMember;
    }
  | { readonly kind: 'rebalanceStarted'; readonly reason: string }
  | { readonly kind: 'generationStarted' }
  | {
      /**
       * The plan of the group's present generation, as it will be stored: `persist` is called in
       * the same turn, after this. Members that the plan leaves out own nothing; where bytes are
       * no assignment of a consumer, it is null.
       */
      readonly kind: 'assignmentPlanned';
      readonly assignments: ReadonlyMap<string, TopicPartitions | null>;
    }
  | { readonly kind: 'stable' }
  /** Taken over from its image. */
  | { readonly kind: 'restored' }
  | { readonly kind: 'empty' }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'persistFailed'; readonly what: string };

/**
 * How a group goes on whose topics are all in keyed delivery: nobody waits for a member that is
 * busy. What is asked about members is asked of their group by the id that it was given for.
 */
export interface KeyedRules {
  /** `keyed.rebalance.wait.ms`: from the first rejoin of a round to its end. */
  readonly rebalanceWaitMs: number;
  /** How many lanes a topic has; 0 for one that is not there. */
  readonly laneCount: (topic: string) => number;
  /**
   * Whether a member whose session has run out stays nonetheless, because its client cannot
   * heartbeat while it handles a record. Asked again every now and then.
   */
  readonly keepsSilent: (member: ClassicMember, now: Now) => boolean;
}

export interface ClassicPorts {
  /** A fresh UUID in its usual spelling. */
  readonly uuid: () => string;
  /**
   * Makes `image` the durable state of the group; null deletes the group and all its committed
   * offsets. Calls `done` exactly once, now or later, also when it fails. Images of one group must
   * become durable in the order of these calls, and `false` means that this one never will.
   */
  readonly persist: (
    groupId: string,
    image: GroupImage | null,
    done: (isDurable: boolean, now: Now) => void,
  ) => void;
  /** Called at once, with the group in its new state. Must not call the coordinator. */
  readonly onEvent?: (group: ClassicGroup, event: GroupEvent) => void;
  /** Null where Kafka's rules hold. The answer may change between any two events. */
  readonly keyedRules?: (groupId: string) => KeyedRules | null;
}

/**
 * What all parts of the coordinator share. Answers and writes are collected while a request or a
 * timer is worked on and go out when it is done: so whatever is called back, and whatever it
 * calls, finds groups in a consistent state.
 */
export class ClassicContext {
  readonly options: ClassicOptions;
  readonly ports: ClassicPorts;
  readonly groups = new Map<string, ClassicGroup>();
  readonly deadlines = new Deadlines();
  #effects: (() => void)[] = [];
  #isFlushing = false;

  constructor(options: ClassicOptions, ports: ClassicPorts) {
    this.options = options;
    this.ports = ports;
  }

  answer<T>(respond: Respond<T>, response: T): void {
    this.#effects.push(() => respond(response));
  }

  persist(
    groupId: string,
    image: GroupImage | null,
    then: (isDurable: boolean, now: Now) => void,
  ): void {
    let isDone = false;
    this.#effects.push(() =>
      this.ports.persist(groupId, image, (isDurable, now) => {
        assert(!isDone, 'persist calls back once');
        isDone = true;
        then(isDurable, now);
        this.flush();
      }),
    );
  }

  event(group: ClassicGroup, event: GroupEvent): void {
    this.ports.onEvent?.(group, event);
  }

  /** Lets out what has been collected. The last step of everything that comes in from outside. */
  flush(): void {
    if (this.#isFlushing || this.#effects.length === 0) return;
    this.#isFlushing = true;
    while (this.#effects.length > 0) {
      const effects = this.#effects;
      this.#effects = [];
      for (const effect of effects) effect();
    }
    this.#isFlushing = false;
  }
}
