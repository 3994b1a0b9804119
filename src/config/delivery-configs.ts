import { choice, integer, maxInt, type Setting, type TextFormat, text } from './setting.ts';

/**
 * The configurations of keyed delivery. Each is a setting of the broker, a configuration of topics
 * and one of groups, all by the same name: a group's value wins over its topic's, and that over the
 * broker's (delivery-settings.ts).
 */

const deadLetterName: TextFormat = {
  pattern: String.raw`^(?!\.{1,2}$)(?:[a-zA-Z0-9._-]|<topic>){0,249}$`,
  words: 'the name of a topic, in which <topic> stands for that of the records, or nothing',
};
const windowSize: TextFormat = {
  pattern: String.raw`^(?:auto|[1-9]\d{0,8})$`,
  words: 'auto, or a number',
};
const orderingKey: TextFormat = {
  pattern: '^(?:key|none|header:.{1,249})$',
  words: 'key, none, or header:NAME',
};

export const deliveryConfigs = {
  'delivery.mode': choice(
    'log',
    ['log', 'keyed'],
    'log: partitions in order, as in Kafka; keyed: each record key in order, on its own',
  ),
  'delivery.start': choice(
    'earliest',
    ['earliest', 'latest'],
    'where a new group begins in keyed delivery',
  ),
  'lease.ms': integer(
    300_000,
    0,
    maxInt,
    'how long a consumer may work on a record, ms; 0: as long as it is in its group',
  ),
  'delivery.attempts.max': integer(
    5,
    0,
    maxInt,
    'failed deliveries after which a record becomes a dead letter; 0: no limit',
  ),
  'retry.backoff.ms': integer(
    1000,
    0,
    maxInt,
    'how long a key waits after a first failure, doubled after each further one, ms',
  ),
  'retry.backoff.max.ms': integer(
    60_000,
    0,
    maxInt,
    'how long a key waits at most after a failure, ms',
  ),
  'dead.letter.topic': text(
    '<topic>.dlq',
    deadLetterName,
    'where dead letters go; <topic> stands for the topic of the records; empty: they are skipped',
  ),
  'dead.letter.policy': choice(
    'continue',
    ['continue', 'halt'],
    'after a dead letter its key goes on, or halts until an operator decides',
  ),
  'delivery.ack': choice(
    'commit',
    ['commit', 'poll'],
    'what finishes records: a commit, or also that the consumer came back for more',
  ),
  'delivery.commit.lag': integer(
    -1,
    -1,
    maxInt,
    'a commit proves all records handled but this many before it; -1: by the kind of client',
  ),
  'delivery.refetch': choice(
    'auto',
    ['auto', 'repeat'],
    'auto: that a client fetches a record again may be a failure; repeat: it never is',
  ),
  'delivery.window': text(
    'auto',
    windowSize,
    'how many records a consumer may have in hand; auto: by how fast it handles them',
  ),
  'delivery.unfinished.max': integer(
    10_000_000,
    1,
    maxInt,
    'records that a consumer may have been given and not finished',
  ),
  'ordering.key': text(
    'key',
    orderingKey,
    'what records are ordered by: their key, a header, or nothing',
  ),
  'null.key.order': choice(
    'none',
    ['none', 'serial'],
    'records without a key: independent of each other, or in order as if they had one key',
  ),
} as const satisfies Record<string, Setting>;

export type DeliveryConfigName = keyof typeof deliveryConfigs;

export const deliveryConfigNames = Object.keys(deliveryConfigs) as readonly DeliveryConfigName[];

export function isDeliveryConfig(name: string): name is DeliveryConfigName {
  return Object.hasOwn(deliveryConfigs, name);
}
