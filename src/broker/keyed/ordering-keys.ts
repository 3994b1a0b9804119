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

/** Stands for "no key" where such records are in order: no byte of a key is such a character. */
export const serialKey = '\u{2205}';

const cursor = new RecordCursor();

/**
 * Finds the ordering key of each record of a stored batch. A key is its exact bytes, as a latin1
 * string. `opened` is what `openRecords` gave.
 */
export function fileBatch(
  batch: Buffer,
  opened: Buffer | null,
  { partition, position }: { readonly partition: number; readonly position: number },
  rules: KeyRules,
): FiledBatch {
  const offsetCount = readLastOffsetDelta(batch, 0) + 1;
  const keys: (string | null | undefined)[] = [];
  const ends: number[] = [];
  if (!isControl(batch, 0)) {
    cursor.reset(batch, 0, opened);
    const start = cursor.recordEnd;
    while (cursor.next()) {
      fillUp(keys, ends, cursor.offsetDelta);
      keys.push(keyOf(cursor, rules));
      ends.push(cursor.recordEnd - start);
    }
    cursor.release();
  }
  fillUp(keys, ends, offsetCount);
  return {
    partition,
    position,
    baseOffset: readBaseOffset(batch, 0),
    offsetCount,
    bytes: readBatchBytes(batch, 0),
    keys,
    ends,
  };
}

/** Offsets without a record, up to that one. */
function fillUp(keys: (string | null | undefined)[], ends: number[], offsetDelta: number): void {
  while (keys.length < offsetDelta) {
    keys.push(undefined);
    ends.push(ends.at(-1) ?? 0);
  }
}

function keyOf(record: RecordCursor, { orderingKey, isNullSerial }: KeyRules): string | null {
  const none = isNullSerial ? serialKey : null;
  switch (orderingKey.kind) {
    case 'none':
      return none;
    case 'key':
      if (record.keyBytes < 0) return none;
      return record.keyLatin1();
    case 'header': {
      const found = record.headers().find(({ key }) => key === orderingKey.name);
      return found?.value?.toString('latin1') ?? none;
    }
  }
}
