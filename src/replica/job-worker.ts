/**
 * The other end of job-thread.ts: does one message after the other, in the order in which they
 * come.
 */

import { parentPort } from 'node:worker_threads';
import { asBuffer } from '../core/as-buffer.ts';
import { AssertionFailed, assert } from '../core/assert.ts';
import { codecs } from '../core/codecs.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import { movable } from './movable.ts';
import { type BatchToOpen, type OpenedBatch, openBatch, unlimitedAllowance } from './open-batch.ts';
import {
  answerQuestion,
  type BatchConversion,
  type BatchQuestion,
  convertBatches,
  type QuestionAnswer,
  unpack,
} from './stored-batches.ts';

/** Bytes arrive as plain arrays, whatever they were. */
export interface OpenCommand {
  readonly kind: 'open';
  readonly batches: readonly (Omit<BatchToOpen, 'records'> & { readonly records: Uint8Array })[];
  /** What the batches of the request may still become. */
  readonly bytesLeft: number;
}

export interface OpenReport {
  readonly kind: 'opened';
  readonly batches: readonly (Omit<OpenedBatch, 'rewritten'> & {
    readonly rewritten: Uint8Array | null;
  })[];
  readonly bytesLeft: number;
}

export interface AskCommand {
  readonly kind: 'ask';
  readonly batch: Uint8Array;
  readonly question: BatchQuestion;
}

export interface AskReport {
  readonly kind: 'asked';
  readonly answer: QuestionAnswer;
}

/** Wants the records of a compressed batch as they are without compression. */
export interface UnpackCommand {
  readonly kind: 'unpack';
  readonly batch: Uint8Array;
}

export interface UnpackReport {
  readonly kind: 'unpacked';
  /** Null: it is damaged. */
  readonly records: Uint8Array | null;
}

/** Wants batches as messages of an old format. */
export interface ConvertCommand {
  readonly kind: 'convert';
  readonly batches: readonly Uint8Array[];
  readonly conversion: BatchConversion;
}

export interface ConvertReport {
  readonly kind: 'converted';
  readonly result: { readonly records: Uint8Array; readonly openedBytes: number } | 'damaged';
}

export type JobCommand = OpenCommand | AskCommand | UnpackCommand | ConvertCommand;
/** An error is a bug: of what may be wrong with the bytes the reports tell. */
export type JobReport = OpenReport | AskReport | UnpackReport | ConvertReport | Error;

const port = parentPort;
assert(port !== null, 'this module is the main one of a worker thread');
port.on('message', (command: JobCommand) => {
  const transfer: ArrayBuffer[] = [];
  let report: JobReport;
  try {
    report = run(command, transfer);
  } catch (error) {
    if (error instanceof AssertionFailed) throw error;
    report = error instanceof Error ? error : new Error(String(error));
    transfer.length = 0;
  }
  port.postMessage(report, transfer);
});

function run(command: JobCommand, transfer: ArrayBuffer[]): JobReport {
  switch (command.kind) {
    case 'open':
      return openAll(command, transfer);
    case 'ask':
      return {
        kind: 'asked',
        answer: answerQuestion(asBuffer(command.batch), command.question, codecs),
      };
    case 'unpack': {
      const records = unpack(asBuffer(command.batch), codecs);
      return { kind: 'unpacked', records: records && movable(records, transfer) };
    }
    case 'convert': {
      const batches = command.batches.map(asBuffer);
      const result = convertBatches(batches, command.conversion, codecs);
      if (result === 'damaged') return { kind: 'converted', result };
      const { records, openedBytes } = result;
      const converted = { records: movable(records, transfer), openedBytes };
      return { kind: 'converted', result: converted };
    }
  }
}

function openAll({ batches, bytesLeft }: OpenCommand, transfer: ArrayBuffer[]): OpenReport {
  let left = bytesLeft;
  const opened = batches.map((batch) => {
    const allowed = Math.min(batch.rules.openedBytesMax, left);
    const rules = { ...batch.rules, openedBytesMax: allowed };
    const records = asBuffer(batch.records);
    const one = openBatch({ ...batch, rules, records }, codecs, unlimitedAllowance());
    assert(one !== null, 'no batch is too large here');
    left = Math.max(0, left - bytesOf(one, allowed));
    const { verdict, rewritten } = one;
    return {
      // What was opened has served; it would be copied.
      verdict: verdict.ok ? { ...verdict, opened: null } : verdict,
      rewritten: rewritten === null ? null : movable(rewritten, transfer),
    };
  });
  return { kind: 'opened', batches: opened, bytesLeft: left };
}

/** What has become of a batch. One that grows beyond what is allowed has cost as much as that. */
function bytesOf({ verdict, rewritten }: OpenedBatch, allowed: number): number {
  if (verdict.ok) return (verdict.opened?.length ?? 0) + (rewritten?.length ?? 0);
  return verdict.errorCode === ErrorCode.MESSAGE_TOO_LARGE ? allowed : 0;
}
