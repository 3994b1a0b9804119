import type { Settings } from './settings.ts';

/** What the log and the planner need of a topic's configuration, with defaults filled in. */
export interface TopicSettings {
  readonly messageBytesMax: number;
  readonly timestampType: 'CreateTime' | 'LogAppendTime';
  readonly timestampBeforeMaxMs: number;
  readonly timestampAfterMaxMs: number;
  readonly compressionType: 'producer' | 'uncompressed' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
  /** So many voters must have what is acknowledged with acks=all; a majority has it anyway. */
  readonly minInsyncReplicas: number;
  /** -1: for ever. */
  readonly retentionMs: number;
  /** -1: no limit. */
  readonly retentionBytes: number;
}

/** The broker setting that a topic's configuration falls back to, by topic configuration name. */
export const brokerSettingOf = {
  'max.message.bytes': 'message.max.bytes',
  'message.timestamp.type': 'log.message.timestamp.type',
  'message.timestamp.before.max.ms': 'log.message.timestamp.before.max.ms',
  'message.timestamp.after.max.ms': 'log.message.timestamp.after.max.ms',
  'compression.type': 'compression.type',
  'min.insync.replicas': 'min.insync.replicas',
  'retention.ms': 'log.retention.ms',
  'retention.bytes': 'log.retention.bytes',
} as const satisfies Record<string, keyof Settings>;

export type TopicConfigName = keyof typeof brokerSettingOf;

/** Overrides of the topic, validated when they were set, over the broker's settings. */
export function topicSettings(
  overrides: ReadonlyMap<string, string>,
  broker: Settings,
): TopicSettings {
  const text = (name: TopicConfigName): string =>
    overrides.get(name) ?? String(broker[brokerSettingOf[name]]);
  const number = (name: TopicConfigName): number => Number(text(name));
  return {
    messageBytesMax: number('max.message.bytes'),
    timestampType: text('message.timestamp.type') as TopicSettings['timestampType'],
    timestampBeforeMaxMs: number('message.timestamp.before.max.ms'),
    timestampAfterMaxMs: number('message.timestamp.after.max.ms'),
    compressionType: text('compression.type') as TopicSettings['compressionType'],
    minInsyncReplicas: number('min.insync.replicas'),
    retentionMs: number('retention.ms'),
    retentionBytes: number('retention.bytes'),
  };
}
