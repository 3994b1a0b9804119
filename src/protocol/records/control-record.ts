/**
 * Control records: what a coordinator writes among a partition's records to end a transaction.
 *
 *   key   => version int16 (0), type int16
 *   value => version int16 (0), coordinatorEpoch int32     of an end-of-transaction marker
 *
 * Sources: ControlRecordType.java, EndTxnMarker.json, KIP-98.
 */

import { readInt16, readInt32, writeInt32 } from './integers.ts';

export const ControlType = { abort: 0, commit: 1 } as const;
export type ControlTypeId = (typeof ControlType)[keyof typeof ControlType];

export function controlKey(type: ControlTypeId): Buffer {
  return Buffer.from([0, 0, 0, type]);
}

export function endTransactionValue(coordinatorEpoch: number): Buffer {
  const value = Buffer.alloc(6);
  writeInt32(value, 2, coordinatorEpoch);
  return value;
}

/** The type that a control record's key names; null if it cannot be one. */
export function readControlType(key: Buffer | null): number | null {
  if (key === null || key.length < 4 || readInt16(key, 0) < 0) return null;
  return readInt16(key, 2);
}

/** The coordinator's epoch of an end-of-transaction marker; null if the value is none. */
export function readCoordinatorEpoch(value: Buffer | null): number | null {
  if (value === null || value.length < 6 || readInt16(value, 0) < 0) return null;
  return readInt32(value, 2);
}
