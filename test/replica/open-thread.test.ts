import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import type { CompressionSetting } from '../../src/protocol/records/build.ts';
import { JobThread } from '../../src/replica/job-thread.ts';
import {
  type BatchToOpen,
  type Opening,
  openBatch,
  unlimitedAllowance,
} from '../../src/replica/open-batch.ts';
import { OpenThread } from '../../src/replica/open-thread.ts';
import { denseBatch, hollowBatch, rules, toOpen } from './large-batches.ts';

function startThread(t: TestContext): OpenThread {
  const thread = new OpenThread(new JobThread((error) => assert.fail(String(error))));
  t.after(() => thread.stop());
  return thread;
}

function open(thread: OpenThread, ...batches: BatchToOpen[]): Promise<Opening> {
  return new Promise((resolve) => thread.open(batches, resolve));
}

test('the thread gives what opening here gives', async (t) => {
  const thread = startThread(t);
  const batches: BatchToOpen[] = [];
  for (const compression of [1, 2, 3, 4] as const) {
    const records = hollowBatch(200_000, { compression });
    for (const compressionType of ['producer', 'uncompressed', 'zstd'] as const) {
      batches.push(toOpen(records, { compressionType }));
    }
  }
  batches.push(toOpen(denseBatch(500_000), { compressionType: 'lz4' }));
  const before = batches.map(({ records }) => Buffer.from(records));
  const result = await open(thread, ...batches);
  const expected = batches.map((batch) => {
    const { verdict, rewritten } = openBatch(batch, codecs, unlimitedAllowance())!;
    return { verdict: { ...verdict, opened: null }, rewritten };
  });
  assert.deepEqual(result, expected);
  const after = batches.map(({ records }) => records);
  assert.deepEqual(after, before, 'the batches themselves stay as they are');
});

test('only the batch is sent, not what its memory is part of', async (t) => {
  const thread = startThread(t);
  const batch = hollowBatch(200_000);
  const followed = Buffer.concat([Buffer.alloc(100), batch, Buffer.alloc(10)]).subarray(100);
  const [opened] = (await open(thread, toOpen(followed))) as Exclude<Opening, Error | 'stopped'>;
  assert.ok(opened?.verdict.ok);
  assert.equal(opened.verdict.bytes, batch.length);
  assert.ok(followed.buffer.byteLength > 0);
});

test('calls end in their order, but much of one does not hold up another', async (t) => {
  const thread = startThread(t);
  const ended: string[] = [];
  const opening = (name: string, ...batches: BatchToOpen[]): Promise<void> =>
    new Promise((resolve) => {
      thread.open(batches, () => {
        ended.push(name);
        resolve();
      });
    });
  const one = toOpen(denseBatch(200_000));
  const many = Array.from({ length: 6 }, () => one);
  await Promise.all([
    ...[opening('first', one), opening('many', ...many)],
    ...[opening('second', one), opening('third', one)],
  ]);
  assert.deepEqual(ended, ['first', 'second', 'third', 'many']);
});

test('what is refused says why, and a bomb goes off there', async (t) => {
  const thread = startThread(t);
  const bounded = { rules: { ...rules, openedBytesMax: 1_000_000 } };
  const malformed = hollowBatch(200_000);
  malformed[malformed.length - 5]! ^= 0xff;
  const result = await open(thread, toOpen(hollowBatch(2_000_000), bounded), toOpen(malformed));
  assert.ok(Array.isArray(result));
  assert.deepEqual(
    result.map(({ verdict }) => verdict.ok || verdict.errorCode),
    [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD],
  );
});

test('what the batches of one request become together is bounded', async (t) => {
  const thread = startThread(t);
  const bounded = { rules: { ...rules, openedBytesMax: 1_000_000 } };
  const half = toOpen(hollowBatch(500_000), bounded);
  const bomb = toOpen(hollowBatch(2_000_000), bounded);
  // Each is refused by itself, and has cost as much as it is allowed to.
  const verdicts = async (...batches: BatchToOpen[]) => {
    const result = await open(thread, ...batches);
    assert.ok(Array.isArray(result));
    return result.map(({ verdict }) => (verdict.ok ? 'ok' : verdict.errorCode));
  };
  const tooLarge = ErrorCode.MESSAGE_TOO_LARGE;
  assert.deepEqual(await verdicts(bomb, bomb, bomb, half, half), [
    ...[tooLarge, tooLarge, tooLarge, 'ok', tooLarge],
  ]);
  // What is stored larger than it came counts too.
  const grown = { ...half, compressionType: 'uncompressed' as const };
  assert.deepEqual(await verdicts(...Array(5).fill(grown)), [
    ...['ok', 'ok', 'ok', 'ok', tooLarge],
  ]);
  assert.deepEqual(await verdicts(half, half), ['ok', 'ok'], 'the next request starts anew');
});

test('an unforeseen error is told, and the thread goes on', async (t) => {
  const thread = startThread(t);
  const batch = toOpen(hollowBatch(200_000));
  const compressionType = 'brotli' as CompressionSetting;
  const failing = open(thread, { ...batch, compressionType });
  const sound = open(thread, batch);
  assert.ok((await failing) instanceof Error);
  assert.ok(Array.isArray(await sound));
});

test('who has cancelled is not called', async (t) => {
  const thread = startThread(t);
  const batch = toOpen(hollowBatch(200_000));
  const called: number[] = [];
  const cancels = [0, 1, 2, 3, 4].map((i) => thread.open([batch, batch], () => called.push(i)));
  for (const i of [0, 2, 4]) cancels[i]!();
  await open(thread, batch);
  assert.deepEqual(called, [1, 3]);
});

test('a stop ends what waits, and what comes later', async (t) => {
  const thread = startThread(t);
  const batch = toOpen(hollowBatch(200_000));
  const results = Array.from({ length: 5 }, () => open(thread, batch));
  await thread.stop();
  assert.deepEqual(await Promise.all(results), Array(5).fill('stopped'));
  assert.equal(await open(thread, batch), 'stopped');
});

test('a thread that ends is fatal, once', async () => {
  for (const code of ['throw new Error("broken")', 'process.exit(1)']) {
    const module = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
    const fatal: unknown[] = [];
    const ended = new Promise<void>((resolve) => {
      const onFatal = (error: unknown) => {
        fatal.push(error);
        resolve();
      };
      const thread = new OpenThread(new JobThread(onFatal, module));
      thread.open([toOpen(hollowBatch(200_000))], () => assert.fail('it cannot be opened'));
    });
    await ended;
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(fatal.length, 1);
  }
});
