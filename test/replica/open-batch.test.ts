import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { Compression } from '../../src/core/compression.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { readCompressionBits } from '../../src/protocol/records/batch-header.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { decodeBatches } from '../../src/protocol/records/decode.ts';
import {
  type BatchToOpen,
  openBatch,
  requestAllowance,
  unlimitedAllowance,
} from '../../src/replica/open-batch.ts';
import { denseBatch, hollowBatch, rules, toOpen } from './large-batches.ts';

const codecIds = Object.values(Compression).filter((id) => id !== Compression.none);

function openHere(batch: BatchToOpen) {
  return openBatch(batch, codecs, requestAllowance());
}

function openAnywhere(batch: BatchToOpen) {
  const opened = openBatch(batch, codecs, unlimitedAllowance());
  assert.ok(opened !== null);
  return opened;
}

test('a small batch is opened here, with what it would give anywhere', () => {
  for (const compression of codecIds) {
    const batch = toOpen(hollowBatch(60_000, { compression }));
    const here = openHere(batch);
    assert.ok(here?.verdict.ok);
    assert.equal(here.verdict.count, 1);
    assert.deepEqual(here, openAnywhere(batch));
  }
});

test('a batch is not opened here if it becomes large, whatever it is before', () => {
  for (const compression of codecIds) {
    const batch = toOpen(hollowBatch(70_000, { compression }));
    assert.ok(batch.records.length < 10_000);
    assert.equal(openHere(batch), null);
    assert.ok(openAnywhere(batch).verdict.ok);
  }
});

test('a large compressed batch is not even tried', () => {
  assert.equal(openHere(toOpen(denseBatch(70_000))), null);
});

test('a large plain batch is walked here, since only other work on it is slow', () => {
  const records = denseBatch(1_000_000, { compression: Compression.none });
  assert.ok(openHere(toOpen(records))?.verdict.ok);
  assert.equal(openHere(toOpen(records, { compressionType: 'zstd' })), null);
  assert.ok(openHere(toOpen(records, { compressionType: 'uncompressed' }))?.verdict.ok);
});

test('records are renumbered here only if they are few', () => {
  const numbered = (count: number) => {
    const offsetDelta = (i: number) => count - 1 - i;
    const records = Array.from({ length: count }, (_, i) => ({
      ...{ key: null, value: null, timestamp: 1000, offsetDelta: offsetDelta(i) },
    }));
    return toOpen(buildBatch({ records, lastOffsetDelta: count - 1 }, codecs));
  };
  const few = openHere(numbered(10));
  assert.ok(few?.rewritten);
  assert.equal(openHere(numbered(5000)), null);
  const { rewritten } = openAnywhere(numbered(5000));
  const [batch] = decodeBatches(rewritten!, { codecs, openedBytesMax: 0 }).batches;
  assert.ok(batch?.records.every(({ offset }, i) => offset === i));
});

test('the codec that the topic wants is that of the rewritten batch', () => {
  const values = decodeBatches(hollowBatch(5000), { codecs, openedBytesMax: 10_000 });
  for (const [name, id] of Object.entries(Compression)) {
    const compressionType = name === 'none' ? 'uncompressed' : (name as 'gzip');
    const batch = toOpen(hollowBatch(5000), { compressionType });
    const { verdict, rewritten } = openHere(batch)!;
    assert.ok(verdict.ok);
    if (id === Compression.gzip) assert.equal(rewritten, null);
    else {
      assert.equal(readCompressionBits(rewritten!, 0), id);
      const decoded = decodeBatches(rewritten!, { codecs, openedBytesMax: 10_000 });
      assert.deepEqual(decoded.batches[0]?.records, values.batches[0]?.records);
    }
  }
});

test('all batches of one request share what it may have opened here', () => {
  const allowance = requestAllowance();
  const batch = toOpen(hollowBatch(50_000));
  let opened = 0;
  while (openBatch(batch, codecs, allowance) !== null) opened++;
  assert.equal(opened, 5);
  // What fails has cost time too.
  const malformed = toOpen(hollowBatch(100));
  malformed.records[malformed.records.length - 5]! ^= 0xff;
  const another = requestAllowance();
  let failed = 0;
  while (openBatch(malformed, codecs, another) !== null) failed++;
  assert.equal(failed, 4);
});

test('bombs are refused, wherever they go off', () => {
  const bomb = hollowBatch(2_000_000);
  const bounded = toOpen(bomb, { rules: { ...rules, openedBytesMax: 1_000_000 } });
  assert.equal(openHere(bounded), null);
  const { verdict } = openAnywhere(bounded);
  assert.ok(!verdict.ok && verdict.errorCode === ErrorCode.MESSAGE_TOO_LARGE);
  // A bound below what is opened here anyway is found here.
  const tight = openHere(toOpen(bomb, { rules: { ...rules, openedBytesMax: 1000 } }));
  assert.ok(tight !== null && !tight.verdict.ok);
  assert.equal(tight.verdict.errorCode, ErrorCode.MESSAGE_TOO_LARGE);
});
