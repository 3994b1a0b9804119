/**
 * The partition that the default partitioners of Java and kafkajs choose for a key
 * (org.apache.kafka.common.utils.Utils.murmur2), so that the model places keys as they do.
 */
export function murmur2Partition(key: string, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions;
}

const multiplier = 0x5bd1e995;

function murmur2(bytes: Buffer): number {
  let hash = 0x9747b28c ^ bytes.length;
  const wholeEnd = bytes.length & ~3;
  for (let index = 0; index < wholeEnd; index += 4) {
    let word = Math.imul(bytes.readInt32LE(index), multiplier);
    word = Math.imul(word ^ (word >>> 24), multiplier);
    hash = Math.imul(hash, multiplier) ^ word;
  }
  if (wholeEnd < bytes.length) {
    for (let index = bytes.length - 1; index >= wholeEnd; index--) {
      hash ^= bytes[index]! << (8 * (index - wholeEnd));
    }
    hash = Math.imul(hash, multiplier);
  }
  hash = Math.imul(hash ^ (hash >>> 13), multiplier);
  return hash ^ (hash >>> 15);
}
