/**
 * The broker configuration that decides in Kafka where a topic has no value of its own
 * (ServerTopicConfigSynonyms), for those that are no settings here: their value is always the
 * default. Left out are those that have no such configuration (`segment.jitter.ms`), or one
 * without a default of that name (`segment.ms`: log.roll.ms has none, log.roll.hours has).
 */
export const topicSynonyms: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'cleanup.policy': 'log.cleanup.policy',
    'delete.retention.ms': 'log.cleaner.delete.retention.ms',
    'file.delete.delay.ms': 'log.segment.delete.delay.ms',
    'flush.messages': 'log.flush.interval.messages',
    'index.interval.bytes': 'log.index.interval.bytes',
    'local.retention.bytes': 'log.local.retention.bytes',
    'local.retention.ms': 'log.local.retention.ms',
    'max.compaction.lag.ms': 'log.cleaner.max.compaction.lag.ms',
    'min.cleanable.dirty.ratio': 'log.cleaner.min.cleanable.ratio',
    'min.compaction.lag.ms': 'log.cleaner.min.compaction.lag.ms',
    preallocate: 'log.preallocate',
    'segment.bytes': 'log.segment.bytes',
    'segment.index.bytes': 'log.index.size.max.bytes',
    'unclean.leader.election.enable': 'unclean.leader.election.enable',
  }),
);

/**
 * The same quantity under the name in which Kafka has its default: `log.retention.ms` has none, and
 * `log.retention.hours` decides.
 */
export const kafkaDefaults: ReadonlyMap<string, { readonly name: string; readonly value: string }> =
  new Map([['log.retention.ms', { name: 'log.retention.hours', value: '168' }]]);
