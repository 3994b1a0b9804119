import {
  advanceSequence,
  readBaseOffset,
  readBaseSequence,
  readLastOffsetDelta,
  readMaxTimestamp,
  readProducerEpoch,
  readProducerId,
  readTimestampType,
} from '../protocol/records/batch-header.ts';
import type { ProducerBatch } from './producers.ts';

/** What applying a stored record batch needs of its header. */
export interface StoredBatchFacts extends ProducerBatch {
  readonly lastOffsetDelta: number;
  readonly maxTimestamp: number;
}

/** Reads the header of a batch that was validated before it was stored. */
export function readStoredBatch(batch: Buffer): StoredBatchFacts {
  const lastOffsetDelta = readLastOffsetDelta(batch, 0);
  const firstSequence = readBaseSequence(batch, 0);
  const maxTimestamp = readMaxTimestamp(batch, 0);
  return {
    baseOffset: readBaseOffset(batch, 0),
    lastOffsetDelta,
    maxTimestamp,
    logAppendTime: readTimestampType(batch, 0) === 'LogAppendTime' ? maxTimestamp : -1,
    producerId: readProducerId(batch, 0),
    epoch: readProducerEpoch(batch, 0),
    firstSequence,
    lastSequence: advanceSequence(firstSequence, lastOffsetDelta),
  };
}
