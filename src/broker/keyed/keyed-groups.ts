import type { GroupEvent, KeyedRules, RemovalCause } from '../../groups/classic/context.ts';
import type { ClassicGroup } from '../../groups/classic/group.ts';
import type { ClassicMember } from '../../groups/classic/member.ts';
import { consumerProtocolType, ownedPartitions } from '../../groups/consumer-protocol.ts';
import type { Now } from '../../groups/deadlines.ts';
import { DeliveryCounters } from '../../groups/keyed/counters.ts';
import type { ReturnCause } from '../../groups/keyed/dispatcher.ts';
import type { StoredEntry } from '../../log/format.ts';
import { decodeLogStarts } from '../../state/commands.ts';
import { EntryType } from '../../state/entry-types.ts';
import { slotsMax } from '../../state/keyed/keyed-table.ts';
import type { Ledger } from '../../state/keyed/ledger.ts';
import type { Broker } from '../broker.ts';
import { clientHost } from '../client-host.ts';
import type { GroupFollower } from '../groups.ts';
import type { Client } from '../handler.ts';
import { copyLedger, Delivery } from './delivery.ts';
import { Handshakes } from './handshakes.ts';
import { Invariants } from './invariants.ts';
import { laneOffset } from './lane-numbers.ts';
import type { Asker } from './lane-offsets.ts';
import { ownersByTopic } from './lane-owners.ts';
import { LeaseWatch } from './lease-watch.ts';
import { MemberFacts } from './member-facts.ts';
import { ModeSwitches } from './mode-switches.ts';
import { lanesFor, Notices } from './notices.ts';
import { leavesTrace, openLedger } from './open-ledger.ts';

/** Members with these assignors position themselves: they always get log delivery. */
const logAssignors: readonly string[] = ['stream', 'streams'];

/** Every group's keyed deliveries, kept in step with its members and with the journal. */
export class KeyedGroups implements GroupFollower {
  readonly #broker: Broker;
  readonly #byGroup = new Map<string, Map<string, Delivery>>();
  readonly #bySlot = new Map<string, Delivery>();
  readonly #facts = new MemberFacts();
  /** Above the lane numbers of all deliveries that ended, also where that is only planned. */
  #laneBaseMin = 0;
  readonly handshakes = new Handshakes();
  readonly invariants: Invariants;
  readonly notices: Notices;
  readonly watch: LeaseWatch;
  /** By topic and group; they outlive the deliveries, which are made anew now and then. */
  readonly #counters = new Map<string, DeliveryCounters>();
  readonly #touched = new Set<Delivery>();
  /** Groups as the coordinator has them, for their members' facts. */
  readonly #groups = new Map<string, ClassicGroup>();
  readonly #switches: ModeSwitches;
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;
  #haveSettingsChanged = false;

  constructor(broker: Broker) {
    this.#broker = broker;
    broker.configs.onChange(() => {
      this.#haveSettingsChanged = true;
      this.#tickLater();
    });
    this.invariants = new Invariants(broker.clock, broker.log);
    this.notices = new Notices(broker.log);
    this.#switches = new ModeSwitches(broker);
    this.watch = new LeaseWatch(broker, () => this.all());
    broker.replica.listen({
      onApplied: (entry) => this.#onApplied(entry),
      onGroupApplied: () => this.#serveTouched(),
      onPlansDropped: () => this.#startOver(),
      onFollowing: () => this.#leave(),
    });
  }

  bySlot(topicId: string, slot: number): Delivery | undefined {
    return this.#bySlot.get(slotKey(topicId, slot));
  }

  get(groupId: string, topicId: string): Delivery | undefined {
    return this.#byGroup.get(groupId)?.get(topicId);
  }

  of(groupId: string): Iterable<Delivery> {
    return this.#byGroup.get(groupId)?.values() ?? [];
  }

  *all(): Iterable<Delivery> {
    for (const deliveries of this.#byGroup.values()) yield* deliveries.values();
  }

  /** As the coordinator has it. */
  group(groupId: string): ClassicGroup | undefined {
    return this.#groups.get(groupId);
  }

  /** For a client that was told its position in the lane and has not fetched there yet. */
  laneEnd(topicName: string, lane: number, asker: Asker): number | undefined {
    const topic = this.#broker.topics.byName(topicName);
    if (topic === undefined || this.#bySlot.size === 0) return undefined;
    const handshake = this.handshakes.find(topic.id, lane, asker);
    if (handshake === undefined) return undefined;
    const end = this.bySlot(topic.id, handshake.slot)?.dispatcher.ledger.lane(lane)?.end;
    return end === undefined ? undefined : laneOffset(handshake.slot, end);
  }

  isKeyed(groupId: string, topicName: string): boolean {
    return this.#broker.deliveryOf(groupId, topicName).mode === 'keyed';
  }

  /** A request of a member came on a connection of this client. */
  noteClient(groupId: string, memberId: string, { softwareName }: Client): void {
    if (!this.#facts.note(groupId, memberId, softwareName)) return;
    const member = this.#groups.get(groupId)?.members.get(memberId);
    if (member === undefined) return;
    for (const delivery of this.of(groupId)) {
      if (!delivery.dispatcher.members.has(memberId)) continue;
      delivery.dispatcher.addMember(this.#facts.of(groupId, member, delivery.settings));
    }
  }

  now(): Now {
    const { clock } = this.#broker;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }

  /** The rules of a group whose topics are all in keyed delivery; null if one is not. */
  keyedRules(groupId: string): KeyedRules | null {
    const subscribed = this.#groups.get(groupId)?.subscribedTopics;
    if (subscribed === null || subscribed === undefined || subscribed.size === 0) return null;
    for (const topic of subscribed) if (!this.isKeyed(groupId, topic)) return null;
    return {
      rebalanceWaitMs: this.#broker.settings['keyed.rebalance.wait.ms'],
      laneCount: (topic) => this.#broker.topics.byName(topic)?.partitions.length ?? 0,
      keepsSilent: (member, now) => this.#keepsSilent(groupId, member, now),
    };
  }

  /** It is at work on a record, is there, and has no other way to say so. */
  #keepsSilent(groupId: string, member: ClassicMember, now: Now): boolean {
    const { memberId } = member;
    if (this.#facts.traitsOf(groupId, member).heartbeatsInBackground) return false;
    if (!this.#broker.groups.connections.hasOpenConnection(groupId, memberId)) return false;
    for (const { dispatcher, settings } of this.of(groupId)) {
      const held = dispatcher.members.get(memberId);
      if (held === undefined || held.inHand === 0 || settings.leaseMs === 0) continue;
      if (held.leaseStartMs + held.leaseMs > now.monotonicMs) return true;
    }
    return false;
  }

  /** The member of this client and host, if there is only one. */
  onlyMember(groupId: string, clientId: string, client: Client): string | undefined {
    const host = clientHost(client);
    const members = [...(this.#groups.get(groupId)?.members.values() ?? [])].filter(
      ({ facts }) => facts.clientId === clientId && facts.clientHost === host,
    );
    return members.length === 1 ? members[0]!.memberId : undefined;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
    for (const delivery of this.all()) delivery.stop();
  }

  /** What the coordinator tells of a group; called in the turn in which it happens. */
  onEvent(group: ClassicGroup, event: GroupEvent): void {
    const { groupId } = group;
    this.#groups.set(groupId, group);
    switch (event.kind) {
      case 'restored':
        this.#restore(group);
        return;
      case 'assignmentPlanned':
        this.#assign(group, event.assignments);
        return;
      case 'memberRejoined':
        this.#onRejoin(group, event.member, event.after);
        return;
      case 'memberReplaced':
        this.#onReplaced(group, event.former, event.member);
        return;
      case 'memberRemoved':
        this.#facts.forget(groupId, event.member.memberId);
        this.#removeMember(groupId, event.member.memberId, causeOf(event.cause));
        return;
      case 'empty':
        this.#onEmpty(groupId);
        return;
      case 'deleted':
        for (const delivery of [...this.of(groupId)]) this.#drop(delivery);
        this.#groups.delete(groupId);
        this.notices.forget(groupId);
        return;
      default:
        return;
    }
  }

  #restore(group: ClassicGroup): void {
    const { state } = this.#broker.replica;
    for (const ledger of state.keyed.ofGroup(group.groupId)) this.#make(copyLedger(ledger), group);
  }

  #make(ledger: Ledger, group: ClassicGroup | undefined): Delivery | undefined {
    const topic = this.#broker.topics.byId(ledger.topicId);
    if (topic === undefined) return undefined;
    const settings = this.#broker.deliveryOf(ledger.groupId, topic.name);
    const key = slotKey(topic.id, ledger.groupId);
    const counters = this.#counters.get(key) ?? new DeliveryCounters();
    this.#counters.set(key, counters);
    const delivery = new Delivery(this.#broker, topic, settings, ledger, counters);
    const deliveries = this.#byGroup.get(ledger.groupId) ?? new Map<string, Delivery>();
    this.#byGroup.set(ledger.groupId, deliveries);
    deliveries.set(topic.id, delivery);
    this.#bySlot.set(slotKey(topic.id, ledger.slot), delivery);
    this.#tickLater();
    const members = group === undefined ? [] : [...group.members.values()];
    if (members.length > 0) {
      const facts = members.map((member) =>
        this.#facts.of(delivery.groupId, member, delivery.settings),
      );
      delivery.restore(facts, this.now());
    }
    return delivery;
  }

  /** The group's plan is about to be stored: lanes get their owners, in the same turn. */
  #assign(
    group: ClassicGroup,
    assignments: ReadonlyMap<string, ReadonlyMap<string, readonly number[]> | null>,
  ): void {
    const { groupId } = group;
    if (group.protocolType !== consumerProtocolType) return;
    if (logAssignors.includes(group.protocolName ?? '')) return;
    const owners = ownersByTopic(assignments);
    for (const topicName of owners.keys()) {
      if (this.isKeyed(groupId, topicName)) this.#open(group, topicName);
    }
    for (const delivery of [...this.of(groupId)]) this.#leaveIfLog(group, delivery);
    for (const delivery of this.of(groupId)) {
      const lanes = owners.get(delivery.topic.name) ?? new Map<number, string>();
      this.#giveLanes(group, delivery, lanes);
    }
    if (this.#byGroup.has(groupId)) this.notices.onAssigned(group, lanesFor(this.#broker, group));
  }

  #giveLanes(group: ClassicGroup, delivery: Delivery, owners: ReadonlyMap<number, string>): void {
    const { dispatcher } = delivery;
    for (const member of group.members.values()) {
      dispatcher.addMember(this.#facts.of(delivery.groupId, member, delivery.settings));
    }
    for (const lane of [...dispatcher.ledger.lanes.keys()]) {
      if (!owners.has(lane)) delivery.endLane(lane);
    }
    for (const [lane, memberId] of owners) {
      const present = dispatcher.presentRange(lane);
      if (present?.member.id === memberId) present.isProvisional = false;
      else if (dispatcher.members.has(memberId)) {
        delivery.endLane(lane);
        dispatcher.openRange(lane, memberId, this.now());
      }
    }
    dispatcher.failures.onAssigned();
    delivery.flush();
    delivery.serveSoon();
  }

  #open(group: ClassicGroup, topicName: string): void {
    const { groupId } = group;
    const topic = this.#broker.topics.byName(topicName);
    if (topic === undefined || this.get(groupId, topic.id) !== undefined) return;
    const opening = openLedger(this.#broker, groupId, topic, {
      isTaken: (slot) => this.#bySlot.has(slotKey(topic.id, slot)),
      laneBaseMin: this.#laneBaseMin,
    });
    if (opening === undefined) {
      this.notices.onNoSlot(groupId, topicName, slotsMax);
      return;
    }
    this.#make(opening.ledger, undefined)?.planned(opening.effect);
    this.#switches.expelHolders(group, topicName);
  }

  /**
   * Lanes that the member's JoinGroup does not list as owned are given up, if it has got anything
   * from them. They stay its own until a plan gives them to somebody else; what it is given next
   * is told from what it had.
   */
  #onRejoin(group: ClassicGroup, member: ClassicMember, metadata: Buffer): void {
    const owned = ownedPartitions(metadata);
    const now = this.now();
    for (const delivery of this.of(group.groupId)) {
      const kept = owned?.get(delivery.topic.name) ?? [];
      const { dispatcher } = delivery;
      const held = dispatcher.members.get(member.memberId)?.ranges ?? [];
      const given = [...held].filter(({ lane, start, end }) => end > start && !kept.includes(lane));
      if (given.length === 0) continue;
      const lanes = [...new Set(given.map(({ lane }) => lane))];
      const present = given.filter(({ isPresent }) => isPresent).map(({ lane }) => lane);
      for (const lane of lanes) delivery.emptyParked(lane);
      dispatcher.giveUp(member.memberId, lanes, member.isAskedToRejoin, now);
      for (const lane of present) dispatcher.keepLane(lane, member.memberId, now);
      delivery.flush();
      delivery.serveSoon();
    }
  }

  #onReplaced(group: ClassicGroup, former: ClassicMember, member: ClassicMember): void {
    for (const delivery of this.of(group.groupId)) {
      const { dispatcher } = delivery;
      const ranges = dispatcher.members.get(former.memberId)?.ranges ?? [];
      const lanes = [...ranges].filter(({ isPresent }) => isPresent).map(({ lane }) => lane);
      this.#removeFrom(delivery, former.memberId, 'died');
      dispatcher.addMember(this.#facts.of(delivery.groupId, member, delivery.settings));
      for (const lane of lanes) dispatcher.openRange(lane, member.memberId, this.now());
      // Nobody else has to rejoin.
      dispatcher.failures.onAssigned();
      delivery.flush();
    }
  }

  #removeMember(groupId: string, memberId: string, cause: ReturnCause): void {
    for (const delivery of this.of(groupId)) {
      this.#removeFrom(delivery, memberId, cause);
      delivery.flush();
      delivery.serveSoon();
    }
  }

  #removeFrom(delivery: Delivery, memberId: string, cause: ReturnCause): void {
    const { dispatcher } = delivery;
    const ranges = dispatcher.members.get(memberId)?.ranges ?? [];
    for (const { lane } of [...ranges]) delivery.emptyParked(lane);
    dispatcher.removeMember(memberId, cause, this.now());
  }

  /** The last member is gone: nothing is loaded any more, and one that did nothing is forgotten. */
  #onEmpty(groupId: string): void {
    for (const delivery of [...this.of(groupId)]) {
      const { ledger } = delivery.dispatcher;
      if (!leavesTrace(ledger)) {
        delivery.planned({ kind: 'closed' });
        this.#drop(delivery);
        continue;
      }
      delivery.stop();
      this.#make(ledger, undefined);
    }
  }

  /** The group is to be forgotten, with all that it finished. */
  close(groupId: string): void {
    for (const delivery of [...this.of(groupId)]) {
      delivery.planned({ kind: 'closed' });
      this.#drop(delivery);
    }
  }

  #drop(delivery: Delivery): void {
    delivery.stop();
    this.#laneBaseMin = Math.max(this.#laneBaseMin, delivery.dispatcher.ledger.laneEnd);
    this.#bySlot.delete(slotKey(delivery.topic.id, delivery.slot));
    this.#counters.delete(slotKey(delivery.topic.id, delivery.groupId));
    const deliveries = this.#byGroup.get(delivery.groupId);
    deliveries?.delete(delivery.topic.id);
    if (deliveries?.size === 0) this.#byGroup.delete(delivery.groupId);
  }

  #onApplied(entry: StoredEntry): void {
    if (this.#byGroup.size === 0) return;
    if (entry.batches.length > 0) this.#onAppended(entry);
    if (entry.type === EntryType.topicDeleted) this.#dropDeleted();
    if (entry.type === EntryType.logStartsMoved) this.#onLogStarts(entry.meta);
  }

  #onAppended(entry: StoredEntry): void {
    const { partitions } = this.#broker.replica.state.topics;
    const topicIds = new Set<string>();
    for (const partition of entry.partitions) {
      const topic = partitions.topic(partition);
      if (topic !== undefined) topicIds.add(topic.id);
    }
    for (const deliveries of this.#byGroup.values()) {
      for (const topicId of topicIds) {
        const delivery = deliveries.get(topicId);
        if (delivery === undefined) continue;
        delivery.onApplied(entry);
        if (delivery.isAwake) this.#touched.add(delivery);
      }
    }
  }

  #dropDeleted(): void {
    for (const deliveries of [...this.#byGroup.values()]) {
      for (const delivery of [...deliveries.values()]) {
        if (this.#broker.topics.byId(delivery.topic.id) === undefined) this.#drop(delivery);
      }
    }
  }

  #onLogStarts(meta: Buffer): void {
    const { partitions } = this.#broker.replica.state.topics;
    for (const { partition, offset } of decodeLogStarts(meta)) {
      const topic = partitions.topic(partition);
      if (topic === undefined) continue;
      for (const deliveries of this.#byGroup.values()) {
        const delivery = deliveries.get(topic.id);
        if (delivery === undefined) continue;
        delivery.dispatcher.filing.deleteBelow(partition, offset);
        this.#touched.add(delivery);
      }
    }
  }

  #serveTouched(): void {
    if (this.#touched.size === 0) return;
    const touched = [...this.#touched];
    this.#touched.clear();
    for (const delivery of touched) delivery.serve();
  }

  /** Another node is the coordinator: it makes its own deliveries from the state. */
  #leave(): void {
    for (const delivery of [...this.all()]) this.#drop(delivery);
    this.#groups.clear();
    this.#counters.clear();
  }

  /** Plans were dropped: what rests on them is void, and all begins again from the state. */
  #startOver(): void {
    const counters = [...this.#counters];
    for (const deliveries of [...this.#byGroup.values()]) {
      for (const delivery of [...deliveries.values()]) this.#drop(delivery);
    }
    for (const [key, kept] of counters) this.#counters.set(key, kept);
    for (const groupId of this.#broker.replica.state.keyed.groups()) {
      const group = this.#groups.get(groupId);
      for (const ledger of this.#broker.replica.state.keyed.ofGroup(groupId)) {
        this.#make(copyLedger(ledger), group);
      }
    }
  }

  /** Leases, backoffs and what else is due, as long as there is any delivery. */
  #tickLater(): void {
    const isIdle = this.#bySlot.size === 0 && !this.#haveSettingsChanged;
    if (this.#isStopped || this.#cancelTimer !== undefined || isIdle) return;
    this.#cancelTimer = this.#broker.clock.after(tickMs, () => {
      this.#cancelTimer = undefined;
      const now = this.now();
      if (this.#haveSettingsChanged) this.#changeSettings();
      for (const deliveries of this.#byGroup.values()) {
        for (const delivery of deliveries.values()) this.#tick(delivery, now);
      }
      this.watch.tick(now);
      this.#tickLater();
    });
  }

  #changeSettings(): void {
    this.#haveSettingsChanged = false;
    for (const [groupId, deliveries] of this.#byGroup) {
      for (const delivery of deliveries.values()) {
        delivery.changeSettings(this.#broker.deliveryOf(groupId, delivery.topic.name));
      }
    }
    for (const group of this.#groups.values()) this.#switches.begin(group);
  }

  /** The topic is in log delivery from this plan on. */
  #leaveIfLog(group: ClassicGroup, delivery: Delivery): void {
    if (this.isKeyed(group.groupId, delivery.topic.name)) return;
    this.#switches.toLog(delivery);
    delivery.planned({ kind: 'closed' });
    this.#drop(delivery);
    this.#switches.expelHolders(group, delivery.topic.name);
  }

  #tick(delivery: Delivery, now: Now): void {
    if (delivery.dispatcher.nextDueMs() > now.monotonicMs) return;
    const expired = delivery.dispatcher.tick(now);
    for (const member of expired) {
      this.#broker.groups.run((coordinator, at) => {
        coordinator.expelMember(delivery.groupId, member.id, 'its lease has ended', at);
      });
    }
    delivery.serve();
  }
}

/** Short enough for the shortest backoff to be felt. */
const tickMs = 50;

function causeOf(cause: RemovalCause): ReturnCause {
  if (cause === 'left') return 'left';
  return cause === 'expelled' ? 'lease' : 'died';
}

function slotKey(topicId: string, slot: number | string): string {
  return `${topicId}:${slot}`;
}
