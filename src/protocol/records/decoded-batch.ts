/** What `decodeBatches` makes of a batch of any magic. */

import { Compression } from '../../core/compression.ts';
import type { TimestampType } from './batch-header.ts';
import type { RecordHeader } from './cursor.ts';
import { RecordsDamagedError } from './iterate.ts';

export interface DecodedRecord {
  offset: number;
  timestamp: number;
  /** -1: none. */
  sequence: number;
  key: Buffer | null;
  value: Buffer | null;
  headers: RecordHeader[];
}

export interface DecodedBatch {
  magic: number;
  /** Name of the codec. */
  compression: keyof typeof Compression;
  timestampType: TimestampType | 'NoTimestampType';
  baseOffset: number;
  lastOffset: number;
  /** From the first byte of the base offset to the last of the batch. */
  sizeInBytes: number;
  crc: number;
  maxTimestamp: number;
  records: DecodedRecord[];
}

export function compressionName(bits: number): keyof typeof Compression {
  for (const [name, id] of Object.entries(Compression)) {
    if (id === bits) return name as keyof typeof Compression;
  }
  throw new RecordsDamagedError(`Unknown compression type id: ${bits}`);
}
