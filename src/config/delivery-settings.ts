import type { DeliveryConfigName } from './delivery-configs.ts';
import { splitList } from './kafka-values.ts';
import type { Settings } from './settings.ts';

/** What the records of a topic are ordered by. */
export type OrderingKey =
  | { readonly kind: 'key' }
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'none' };

/** How a topic is delivered to a group. */
export interface DeliverySettings {
  readonly mode: 'log' | 'keyed';
  readonly start: 'earliest' | 'latest';
  /** 0: as long as the member lives. */
  readonly leaseMs: number;
  /** 0: no limit. */
  readonly attemptsMax: number;
  /** At most `retryBackoffMaxMs`. */
  readonly retryBackoffMs: number;
  readonly retryBackoffMaxMs: number;
  /** undefined: dead letters are skipped. */
  readonly deadLetterTopic: string | undefined;
  readonly deadLetterPolicy: 'continue' | 'halt';
  readonly ack: 'commit' | 'poll';
  /** undefined: not declared, the kind of client says. */
  readonly commitLag: number | undefined;
  readonly refetch: 'auto' | 'repeat';
  /** undefined: by how fast the member handles records. */
  readonly window: number | undefined;
  readonly unfinishedMax: number;
  readonly orderingKey: OrderingKey;
  readonly nullKeyOrder: 'none' | 'serial';
}

export interface DeliverySources {
  /** What was set for the group. */
  readonly group: ReadonlyMap<string, string>;
  readonly topicName: string;
  /** What was set for the topic. */
  readonly topic: ReadonlyMap<string, string>;
  readonly broker: Settings;
}

/** The group's values, or else the topic's, or else the broker's; validated when they were set. */
export function resolveDelivery(sources: DeliverySources): DeliverySettings {
  const { group, topicName, topic, broker } = sources;
  const text = (name: DeliveryConfigName): string =>
    group.get(name) ?? topic.get(name) ?? String(broker[name]);
  const number = (name: DeliveryConfigName): number => Number(text(name));
  const mode =
    group.get('delivery.mode') ??
    topic.get('delivery.mode') ??
    (isKeyedTopic(topicName, broker) ? 'keyed' : broker['delivery.mode']);
  const deadLetterTopic = text('dead.letter.topic').replaceAll('<topic>', () => topicName);
  const retryBackoffMaxMs = number('retry.backoff.max.ms');
  const commitLag = number('delivery.commit.lag');
  const window = text('delivery.window');
  return Object.freeze<DeliverySettings>({
    mode: mode as DeliverySettings['mode'],
    start: text('delivery.start') as DeliverySettings['start'],
    leaseMs: number('lease.ms'),
    attemptsMax: number('delivery.attempts.max'),
    retryBackoffMs: Math.min(number('retry.backoff.ms'), retryBackoffMaxMs),
    retryBackoffMaxMs,
    deadLetterTopic: deadLetterTopic === '' ? undefined : deadLetterTopic,
    deadLetterPolicy: text('dead.letter.policy') as DeliverySettings['deadLetterPolicy'],
    ack: text('delivery.ack') as DeliverySettings['ack'],
    commitLag: commitLag < 0 ? undefined : commitLag,
    refetch: text('delivery.refetch') as DeliverySettings['refetch'],
    window: window === 'auto' ? undefined : Number(window),
    unfinishedMax: number('delivery.unfinished.max'),
    orderingKey: parseOrderingKey(text('ordering.key')),
    nullKeyOrder: text('null.key.order') as DeliverySettings['nullKeyOrder'],
  });
}

/** Whether `keyed.topics` names it. */
export function isKeyedTopic(topicName: string, broker: Settings): boolean {
  return splitList(broker['keyed.topics']).some((pattern) => matchesPattern(topicName, pattern));
}

/**
 * Whether the name is the pattern, in which each `*` stands for any text. Of several ways to match,
 * the earliest place for each piece is as good as any, so it takes no longer than name times
 * pattern, which a regular expression with many stars would.
 */
export function matchesPattern(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = name.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

const headerPrefix = 'header:';

function parseOrderingKey(text: string): OrderingKey {
  if (!text.startsWith(headerPrefix)) return { kind: text as 'key' | 'none' };
  return { kind: 'header', name: text.slice(headerPrefix.length) };
}
