import { settingDoc, settingRule } from './broker-configs.ts';
import { deliveryConfigNames, isDeliveryConfig } from './delivery-configs.ts';
import { parseValue, type ValueRule } from './kafka-values.ts';
import type { ValidConfigs } from './topic-configs.ts';

/** What may be configured for a group (Kafka's resource type GROUP): its delivery. */
export interface GroupConfig extends ValueRule {
  readonly doc: string;
}

export const groupConfigs: ReadonlyMap<string, GroupConfig> = new Map(
  deliveryConfigNames.map((name) => [name, { ...settingRule(name), doc: settingDoc(name) }]),
);

const noConsumerGroups =
  'it is about the consumer group protocol (KIP-848), which is not served yet';
const noShareGroups = 'it is about share groups (KIP-932), which are not served yet';
const noStreamsGroups = 'it is about streams groups (KIP-1071), which are not served yet';

/** Kafka has these (GroupConfig); what they are about is not served. */
const unsupported: Readonly<Record<string, string>> = {
  'consumer.assignment.interval.ms': noConsumerGroups,
  'consumer.heartbeat.interval.ms': noConsumerGroups,
  'consumer.session.timeout.ms': noConsumerGroups,
  'share.assignment.interval.ms': noShareGroups,
  'share.auto.offset.reset': noShareGroups,
  'share.delivery.count.limit': noShareGroups,
  'share.heartbeat.interval.ms': noShareGroups,
  'share.isolation.level': noShareGroups,
  'share.partition.max.record.locks': noShareGroups,
  'share.record.lock.duration.ms': noShareGroups,
  'share.renew.acknowledge.enable': noShareGroups,
  'share.session.timeout.ms': noShareGroups,
  'streams.assignment.interval.ms': noStreamsGroups,
  'streams.heartbeat.interval.ms': noStreamsGroups,
  'streams.initial.rebalance.delay.ms': noStreamsGroups,
  'streams.num.standby.replicas': noStreamsGroups,
  'streams.session.timeout.ms': noStreamsGroups,
};

/** Judges all configurations that a group would have together. */
export function validateGroupConfigs(given: ReadonlyMap<string, string>): ValidConfigs {
  const configs = new Map<string, string>();
  for (const [name, value] of given) {
    if (!isDeliveryConfig(name)) return { error: unknownName(name) };
    const parsed = parseValue(name, value, groupConfigs.get(name)!);
    if ('error' in parsed) return parsed;
    configs.set(name, parsed.text);
  }
  return { configs };
}

function unknownName(name: string): string {
  if (!Object.hasOwn(unsupported, name)) return `Unknown group config name: ${name}`;
  return `The group config ${name} is not supported: ${unsupported[name]}`;
}
