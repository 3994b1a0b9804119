import type { ClassicGroup } from '../../groups/classic/group.ts';
import { consumerProtocolType, ownedPartitions } from '../../groups/consumer-protocol.ts';
import type { Broker } from '../broker.ts';
import type { Delivery } from './delivery.ts';

/**
 * Topics and groups that go over from log delivery to keyed delivery, or back, while members are
 * there. The members are asked to rejoin, and the plan that they make together is the first one
 * that goes by the new mode.
 */
export class ModeSwitches {
  readonly #broker: Broker;

  constructor(broker: Broker) {
    this.#broker = broker;
  }

  /** A configuration changed: asks the members of a group that is concerned to rejoin. */
  begin(group: ClassicGroup): void {
    const { groupId, protocolType, subscribedTopics } = group;
    if (group.members.size === 0 || protocolType !== consumerProtocolType) return;
    for (const name of subscribedTopics ?? []) {
      const topic = this.#broker.topics.byName(name);
      if (topic === undefined) continue;
      const isKeyed = this.#broker.keyed.get(groupId, topic.id) !== undefined;
      if (isKeyed === this.#broker.keyed.isKeyed(groupId, name)) continue;
      const reason = `the delivery of ${name} changes`;
      this.#broker.groups.run((coordinator, now) => {
        coordinator.requestRebalance(groupId, reason, now);
      });
      return;
    }
  }

  /**
   * A delivery whose topic is in log delivery from now on: each partition goes on at its low
   * watermark, and what was finished above it comes again.
   */
  toLog({ groupId, topic, dispatcher }: Delivery): void {
    const commitMs = this.#broker.clock.wallMs();
    const offsets = topic.partitions.map((partition) => {
      const offset = dispatcher.ledger.finished(partition).low;
      const committed = { offset, leaderEpoch: -1, metadata: '', commitMs, expireMs: -1 };
      return [partition, committed] as const;
    });
    this.#broker.offsets.commit({ groupId, offsets }, () => undefined);
  }

  /**
   * Members that kept partitions of the topic over the rebalance (cooperative assignors) would go
   * on at their old positions, and never ask for the new ones. They have to come anew.
   */
  expelHolders(group: ClassicGroup, topicName: string): void {
    const { clock, groups } = this.#broker;
    for (const member of group.members.values()) {
      const owned = ownedPartitions(member.metadata(group.protocolName!));
      if ((owned?.get(topicName)?.length ?? 0) === 0) continue;
      // Not now: the coordinator is in the middle of storing the plan.
      clock.soon(() => {
        groups.run((coordinator, now) => {
          const reason = `the delivery of ${topicName} changed`;
          coordinator.expelMember(group.groupId, member.memberId, reason, now);
        });
      });
    }
  }
}
