/**
 * Reads the topics out of a ConsumerProtocolSubscription, the blob that members of protocol type
 * `consumer` send as metadata. The blob itself is never rewritten; only these names are looked at,
 * and only where Kafka's coordinator looks too (offset expiry, OffsetDelete).
 *
 *     subscription := version int16, topics, rest
 *     topics       := count int32, count × name
 *     name         := length int16, UTF-8
 *
 * Every version begins like version 0 (Kafka's ClassicGroup.computeSubscribedTopics relies on it).
 */
export const consumerProtocolType = 'consumer';

/** The topic names, or null where the bytes are not a subscription. */
export function readSubscribedTopics(metadata: Buffer): string[] | null {
  if (metadata.length < 6 || metadata.readInt16BE(0) < 0) return null;
  const count = metadata.readInt32BE(2);
  // A name takes two bytes at least, so a larger count is a lie and must not size anything.
  if (count < 0 || count > (metadata.length - 6) / 2) return null;
  const topics: string[] = [];
  let at = 6;
  for (let i = 0; i < count; i++) {
    if (at + 2 > metadata.length) return null;
    const bytes = metadata.readInt16BE(at);
    at += 2;
    if (bytes < 0 || at + bytes > metadata.length) return null;
    topics.push(metadata.toString('utf8', at, at + bytes));
    at += bytes;
  }
  return topics;
}
