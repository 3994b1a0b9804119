/** Batches that are large before or after opening, for tests of opening. */
import { codecs } from '../../src/core/codecs.ts';
import { seededRandom } from '../../src/core/random.ts';
import { type BatchInput, buildBatch } from '../../src/protocol/records/build.ts';
import type { ProduceRules } from '../../src/protocol/records/validate.ts';
import type { BatchToOpen } from '../../src/replica/open-batch.ts';

export const rules: ProduceRules = {
  version: 9,
  topicPartition: 'orders-0',
  messageBytesMax: 10_000_000,
  openedBytesMax: 64 * 1024 * 1024,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: Number.MAX_SAFE_INTEGER,
  timestampAfterMaxMs: Number.MAX_SAFE_INTEGER,
  compacted: false,
  nowMs: 5000,
};

/** One record, which compresses to next to nothing. */
export function hollowBatch(valueBytes: number, more: Partial<BatchInput> = {}): Buffer {
  const records = [{ key: null, value: Buffer.alloc(valueBytes, 1), timestamp: 1000 }];
  return buildBatch({ records, compression: 1, ...more }, codecs);
}

/** One record, which does not compress. */
export function denseBatch(valueBytes: number, more: Partial<BatchInput> = {}): Buffer {
  const value = Buffer.from(seededRandom(valueBytes).bytes(valueBytes));
  const records = [{ key: null, value, timestamp: 1000 }];
  return buildBatch({ records, compression: 1, ...more }, codecs);
}

export function toOpen(records: Buffer, more: Partial<BatchToOpen> = {}): BatchToOpen {
  return { records, rules, compressionType: 'producer', ...more };
}
