/**
 * The hash by which the default partitioners of Kafka's clients choose a partition
 * (org.apache.kafka.common.utils.Utils.murmur2).
 */
const seed = 0x9747b28c;
const multiplier = 0x5bd1e995;

/** The partition of a key, among so many. */
export function murmur2Partition(key: Buffer, partitionCount: number): number {
  return (murmur2(key) & 0x7fffffff) % partitionCount;
}

export function murmur2(bytes: Buffer): number {
  let hash = seed ^ bytes.length;
  const wholeEnd = bytes.length & ~3;
  for (let at = 0; at < wholeEnd; at += 4) {
    let word = Math.imul(bytes.readInt32LE(at), multiplier);
    word = Math.imul(word ^ (word >>> 24), multiplier);
    hash = Math.imul(hash, multiplier) ^ word;
  }
  if (wholeEnd < bytes.length) {
    for (let at = bytes.length - 1; at >= wholeEnd; at--) hash ^= bytes[at]! << (8 * (at & 3));
    hash = Math.imul(hash, multiplier);
  }
  hash = Math.imul(hash ^ (hash >>> 13), multiplier);
  return hash ^ (hash >>> 15);
}
