import { assert } from '../core/assert.ts';
import {
  readBaseOffset,
  readLastOffsetDelta,
  readLeaderEpoch,
  readMaxTimestamp,
} from '../protocol/records/batch-header.ts';
import type { ExtentTable } from './extent-table.ts';
import type { StoredEntry } from './format.ts';

/** Files the stored batches of an applied entry. */
export function addExtents(table: ExtentTable, entry: StoredEntry): void {
  for (let i = 0; i < entry.batches.length; i++) {
    const batch = entry.batches[i]!;
    const baseOffset = readBaseOffset(batch, 0);
    assert(Number.isSafeInteger(baseOffset), 'a stored offset is a safe integer');
    table.add({
      partition: entry.partitions[i]!,
      baseOffset,
      count: readLastOffsetDelta(batch, 0) + 1,
      maxTimestamp: readMaxTimestamp(batch, 0),
      leaderEpoch: readLeaderEpoch(batch, 0),
      position: entry.positions[i]!,
      bytes: batch.length,
    });
  }
}
