import type { OrderingKey } from '../../config/delivery-settings.ts';
import type { FiledBatch } from '../../groups/keyed/record-store.ts';
import {
  isControl,
  readBaseOffset,
  readBatchBytes,
  readLastOffsetDelta,
} from '../../protocol/records/batch-header.ts';
import { RecordCursor } from '../../protocol/records/cursor.ts';

export interface KeyRules {
  readonly orderingKey: OrderingKey;
  /** `null.key.order=serial`: records without a key are in order, as if they had one. */
  readonly isNullSerial: boolean;
}

/** Stands for "no key" where such records are in order: no real key has its first character. */
const serialKey = 'n';

const cursor = new RecordCursor();

/**
 * Finds the ordering key of each record of a stored batch. A key is its exact bytes, as a latin1
 * string behind a letter that tells it from "no key". `opened` is what `openRecords` gave.
 */
export function fileBatch(
  batch: Buffer,
  opened: Buffer | null,
  place: { readonly partition: number; readonly position: number },
  rules: KeyRules,
): FiledBatch {
  const offsetCount = readLastOffsetDelta(batch, 0) + 1;
  const keys = new Array<string | null | undefined>(offsetCount).fill(undefined);
  const ends = new Array<number>(offsetCount).fill(0);
  if (!isControl(batch, 0)) {
    cursor.reset(batch, 0, opened);
    const start = cursor.recordEnd;
    while (cursor.next()) {
      keys[cursor.offsetDelta] = keyOf(cursor, rules);
      ends[cursor.offsetDelta] = cursor.recordEnd - start;
    }
    cursor.release();
    for (let i = 1; i < offsetCount; i++) if (ends[i] === 0) ends[i] = ends[i - 1]!;
  }
  return {
    ...place,
    baseOffset: readBaseOffset(batch, 0),
    offsetCount,
    bytes: readBatchBytes(batch, 0),
    keys,
    ends,
  };
}

function keyOf(record: RecordCursor, { orderingKey, isNullSerial }: KeyRules): string | null {
  const none = isNullSerial ? serialKey : null;
  switch (orderingKey.kind) {
    case 'none':
      return none;
    case 'key':
      if (record.keyBytes < 0) return none;
      return `k${record.keyLatin1()}`;
    case 'header': {
      const found = record.headers().find(({ key }) => key === orderingKey.name);
      return found?.value ? `k${found.value.toString('latin1')}` : none;
    }
  }
}
