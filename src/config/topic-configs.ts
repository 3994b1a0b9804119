import { settingDoc, settingRule } from './broker-configs.ts';
import { deliveryConfigNames, isDeliveryConfig } from './delivery-configs.ts';
import { type KafkaType, maxLongText, parseValue, type ValueRule } from './kafka-values.ts';
import type { SettingName } from './settings.ts';
import { brokerSettingOf } from './topic-settings.ts';

/**
 * Every configuration that a topic may have, with Kafka's names, types and bounds. Three kinds:
 *
 * - enforced: falls back to a setting of the broker and does what it says
 * - fixed: describes what is so here; no other value is accepted
 * - none: accepted, stored and shown, because clients set it when they create topics, and without
 *   effect, because it is about files that are not laid out as in Kafka
 *
 * What is in none of them is refused, so that nobody relies on what is not kept.
 */
export interface TopicConfig extends ValueRule {
  readonly kind: 'enforced' | 'fixed' | 'none';
  /** The value where none is set; of enforced ones the broker's setting decides. */
  readonly default: string;
  readonly doc: string;
}

type NoneRule = Omit<ValueRule, 'type'>;

function enforced(type: KafkaType, rule: NoneRule, doc: string): TopicConfig {
  return { kind: 'enforced', type, default: '', ...rule, doc };
}
/** `why` says what would have to be so for another value to be true. */
function fixed(type: KafkaType, value: string, why: string, doc: string): TopicConfig {
  const check = (text: string) => (text === value ? undefined : `Value must be ${value}: ${why}`);
  return { kind: 'fixed', type, default: value, check, doc: `${doc} Fixed: ${why}.` };
}
function none(type: KafkaType, value: string, rule: NoneRule, why: string): TopicConfig {
  const doc = `Accepted and shown, without effect: ${why}.`;
  return { kind: 'none', type, default: value, ...rule, doc };
}

const noSegments = 'partitions have no segment files of their own';
const noCompaction = 'it is about compaction, which is not supported yet';
const oneCopy = 'what is copied between nodes is not throttled by topic';
const noTiers = 'tiered storage is not supported';
const journalSyncs = 'the journal is synced before records are acknowledged (journal.sync)';

/** KIP-73: the literal `*`, or pairs of partition and broker. */
function throttleError(name: string): (list: string) => string | undefined {
  return (list) =>
    list === '' || list === '*' || /^\d+:\d+(,\d+:\d+)*$/.test(list)
      ? undefined
      : `${name} must be the literal '*' or a list of replicas in the following format: ` +
        '[partitionId]:[brokerId],[partitionId]:[brokerId],...';
}

function throttle(name: string): TopicConfig {
  return none('LIST', '', { check: throttleError(name) }, oneCopy);
}

/** Those of keyed delivery are the broker's settings of the same names. */
const delivery: Readonly<Record<string, TopicConfig>> = Object.fromEntries(
  deliveryConfigNames.map((name) => {
    const { type, ...rule } = settingRule(name);
    return [name, enforced(type, rule, settingDoc(name))];
  }),
);

export const topicConfigs: ReadonlyMap<string, TopicConfig> = new Map(
  Object.entries({
    ...delivery,
    'cleanup.policy': {
      ...fixed(
        'LIST',
        'delete',
        'compaction is not supported yet',
        'What happens to old records: they are deleted by retention.ms and retention.bytes.',
      ),
      values: ['compact', 'delete'],
    },
    'compression.type': enforced(
      'STRING',
      { values: ['uncompressed', 'zstd', 'lz4', 'snappy', 'gzip', 'producer'] },
      'How record batches are stored; producer keeps them as they were sent.',
    ),
    'delete.retention.ms': none('LONG', '86400000', { min: 0 }, noCompaction),
    'file.delete.delay.ms': none('LONG', '60000', { min: 0 }, noSegments),
    'flush.messages': none('LONG', maxLongText, { min: 1 }, journalSyncs),
    'flush.ms': none('LONG', maxLongText, { min: 0 }, journalSyncs),
    'follower.replication.throttled.replicas': throttle('follower.replication.throttled.replicas'),
    'index.interval.bytes': none('INT', '4096', { min: 0 }, noSegments),
    'leader.replication.throttled.replicas': throttle('leader.replication.throttled.replicas'),
    'local.retention.bytes': fixed('LONG', '-2', noTiers, 'Bytes kept of a tiered topic.'),
    'local.retention.ms': fixed('LONG', '-2', noTiers, 'Time kept of a tiered topic.'),
    'max.compaction.lag.ms': none('LONG', maxLongText, { min: 1 }, noCompaction),
    'max.message.bytes': enforced('INT', { min: 0 }, 'The largest record batch, in bytes.'),
    'message.timestamp.after.max.ms': enforced(
      'LONG',
      { min: 0 },
      "How far a record's timestamp may lie after the time at which the broker takes it, in ms.",
    ),
    'message.timestamp.before.max.ms': enforced(
      'LONG',
      { min: 0 },
      "How far a record's timestamp may lie before the time at which the broker takes it, in ms.",
    ),
    'message.timestamp.type': enforced(
      'STRING',
      { values: ['CreateTime', 'LogAppendTime'] },
      'Whether records keep the timestamp of the producer or get that of the broker.',
    ),
    'min.cleanable.dirty.ratio': none('DOUBLE', '0.5', { min: 0, max: 1 }, noCompaction),
    'min.compaction.lag.ms': none('LONG', '0', { min: 0 }, noCompaction),
    'min.insync.replicas': enforced(
      'INT',
      { min: 1 },
      'How many replicas must have a record before it is acknowledged with acks=all; a majority ' +
        'has it in any case.',
    ),
    preallocate: none('BOOLEAN', 'false', {}, noSegments),
    'remote.log.copy.disable': fixed('BOOLEAN', 'false', noTiers, 'Stops copies to a tier.'),
    'remote.log.delete.on.disable': fixed('BOOLEAN', 'false', noTiers, 'Empties a tier.'),
    'remote.storage.enable': fixed('BOOLEAN', 'false', noTiers, 'Copies records to a tier.'),
    'retention.bytes': enforced(
      'LONG',
      {},
      'Of each partition at least this many of the newest bytes are kept, and older record ' +
        'batches deleted; negative: no limit.',
    ),
    'retention.ms': enforced(
      'LONG',
      { min: -1 },
      'Record batches whose newest timestamp is older than this are deleted, in ms; -1: never.',
    ),
    'segment.bytes': none('INT', '1073741824', { min: 1_048_576 }, noSegments),
    'segment.index.bytes': none('INT', '10485760', { min: 4 }, noSegments),
    'segment.jitter.ms': none('LONG', '0', { min: 0 }, noSegments),
    'segment.ms': none('LONG', '604800000', { min: 1 }, noSegments),
    'unclean.leader.election.enable': fixed(
      'BOOLEAN',
      'false',
      'a node without all acknowledged records is never elected',
      'Whether a replica that lacks records may become leader.',
    ),
  } satisfies Record<string, TopicConfig>),
);

/** Kafka has these; they are refused with the reason. */
const unsupported: Readonly<Record<string, string>> = {
  'compression.gzip.level': 'compression levels cannot be chosen',
  'compression.lz4.level': 'compression levels cannot be chosen',
  'compression.zstd.level': 'compression levels cannot be chosen',
};

/** Configurations of a topic as they are to be, in canonical form, or what is wrong with them. */
export type ValidConfigs =
  | { readonly configs: ReadonlyMap<string, string> }
  | { readonly error: string };

/** Judges all configurations that a topic would have together (Kafka's LogConfig.validate). */
export function validateTopicConfigs(given: ReadonlyMap<string, string>): ValidConfigs {
  const configs = new Map<string, string>();
  for (const name of given.keys()) {
    if (topicConfigs.has(name)) continue;
    const why = unsupported[name];
    return {
      error:
        why === undefined
          ? `Unknown topic config name: ${name}`
          : `The topic config ${name} is not supported: ${why}`,
    };
  }
  for (const [name, value] of given) {
    const parsed = parseValue(name, value, topicConfigs.get(name)!);
    if ('error' in parsed) return parsed;
    configs.set(name, parsed.text);
  }
  const error = compactionLagError(configs);
  return error === undefined ? { configs } : { error };
}

function compactionLagError(configs: ReadonlyMap<string, string>): string | undefined {
  const [least, most] = ['min.compaction.lag.ms', 'max.compaction.lag.ms'].map((name) =>
    BigInt(configs.get(name) ?? topicConfigs.get(name)!.default),
  );
  if (least! <= most!) return undefined;
  return (
    `conflict topic config setting min.compaction.lag.ms (${least}) > ` +
    `max.compaction.lag.ms (${most})`
  );
}

/** The broker's setting that a topic's configuration falls back to, if there is one. */
export function brokerSettingFor(name: string): SettingName | undefined {
  if (isDeliveryConfig(name)) return name;
  return (brokerSettingOf as Readonly<Record<string, SettingName>>)[name];
}
