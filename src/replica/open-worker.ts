/**
 * The other end of open-thread.ts: opens batches one after the other, in the order in which they
 * come.
 */
import { parentPort, type TransferListItem } from 'node:worker_threads';
import { AssertionFailed, assert } from '../core/assert.ts';
import { codecs } from '../core/codecs.ts';
import { type BatchToOpen, type OpenedBatch, openBatch, unlimitedAllowance } from './open-batch.ts';

/** Bytes arrive as plain arrays, whatever they were. */
export interface OpenCommand {
  readonly batches: readonly (Omit<BatchToOpen, 'records'> & { readonly records: Uint8Array })[];
}

export type OpenReport =
  | readonly (Omit<OpenedBatch, 'rewritten'> & { readonly rewritten: Uint8Array | null })[]
  | Error;

const port = parentPort;
assert(port !== null, 'this module is the main one of a worker thread');
port.on('message', ({ batches }: OpenCommand) => {
  const transfer: TransferListItem[] = [];
  let report: OpenReport;
  try {
    report = batches.map((batch) => open(batch, transfer));
  } catch (error) {
    if (error instanceof AssertionFailed) throw error;
    report = error instanceof Error ? error : new Error(String(error));
    transfer.length = 0;
  }
  port.postMessage(report, transfer);
});

function open(batch: OpenCommand['batches'][number], transfer: TransferListItem[]) {
  const { buffer, byteOffset, length } = batch.records;
  const records = Buffer.from(buffer, byteOffset, length);
  const opened = openBatch({ ...batch, records }, codecs, unlimitedAllowance());
  assert(opened !== null, 'no batch is too large here');
  const { verdict, rewritten } = opened;
  return {
    // What was opened has served; it would be copied.
    verdict: verdict.ok ? { ...verdict, opened: null } : verdict,
    rewritten: rewritten === null ? null : movable(rewritten, transfer),
  };
}

/** Node's pool of small buffers stays here. */
function movable(bytes: Buffer, transfer: TransferListItem[]): Uint8Array {
  const own = bytes.buffer.byteLength === bytes.length ? bytes : new Uint8Array(bytes);
  transfer.push(own.buffer as ArrayBuffer);
  return own;
}
