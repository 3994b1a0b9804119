import { murmur2Partition as partitionOf } from '../../src/core/murmur2.ts';

/** The partition that the default partitioners choose, so that the model places keys as they do. */
export function murmur2Partition(key: string, partitions: number): number {
  return partitionOf(Buffer.from(key), partitions);
}
