import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import type { CompressionId } from '../../src/core/compression.ts';
import { type BatchInput, buildBatch } from '../../src/protocol/records/build.ts';
import { JobThread } from '../../src/replica/job-thread.ts';
import { type BatchQuestion, StoredBatches } from '../../src/replica/stored-batches.ts';

const unbounded = { offsetMin: 0, openedBytesMax: 64 * 1024 * 1024 };

/** Four records with times out of order; the batch starts at offset 10. */
function batchOf(valueBytes: number, compression: CompressionId = 1): Buffer {
  const records = [1000, 3000, 2000, 3000].map((timestamp) => ({
    ...{ key: null, value: Buffer.alloc(valueBytes, 1), timestamp },
  }));
  const input: BatchInput = { records, compression, baseOffset: 10 };
  return buildBatch(input, codecs);
}

interface World {
  readonly batches: StoredBatches;
  readonly thread: JobThread;
  /** Jobs that went to the thread. */
  readonly jobs: () => number;
}

function start(t: TestContext): World {
  const thread = new JobThread((error) => assert.fail(String(error)));
  t.after(() => thread.stop());
  let jobs = 0;
  const run = thread.run.bind(thread);
  thread.run = (job) => {
    jobs++;
    return run(job);
  };
  return { batches: new StoredBatches(codecs, thread), thread, jobs: () => jobs };
}

test('here and in the thread the answers are the same', async (t) => {
  const { batches, jobs } = start(t);
  const questions: [Partial<BatchQuestion>, unknown][] = [
    [{ timestamp: 0 }, { offset: 10, timestamp: 1000 }],
    [{ timestamp: 1001 }, { offset: 11, timestamp: 3000 }],
    [
      { timestamp: 1001, offsetMin: 12 },
      { offset: 12, timestamp: 2000 },
    ],
    [{ timestamp: 3001 }, null],
    [{ timestamp: 'latest' }, { offset: 11, timestamp: 3000 }],
  ];
  for (const compression of [0, 1, 2, 3, 4] as const) {
    for (const [question, expected] of questions) {
      for (const valueBytes of [10, 100_000]) {
        const asked: BatchQuestion = { timestamp: 0, ...unbounded, ...question };
        assert.deepEqual(await batches.ask(batchOf(valueBytes, compression), asked), expected);
      }
    }
  }
  // That a batch has nothing so late stands in its header.
  assert.equal(jobs(), 5 * questions.length - 4, 'only the large ones went there');
});

test('what is damaged or grows too much is told, wherever it is opened', async (t) => {
  const { batches, jobs } = start(t);
  for (const [valueBytes, expectedJobs] of [
    [100, 0],
    [100_000, 1],
  ] as const) {
    const batch = batchOf(valueBytes);
    batch[batch.length - 5]! ^= 0xff;
    assert.equal(await batches.ask(batch, { timestamp: 0, ...unbounded }), 'damaged');
    assert.equal(jobs(), expectedJobs);
  }
  const batch = batchOf(100_000);
  for (const openedBytesMax of [10_000, 300_000]) {
    const asked = { timestamp: 0, offsetMin: 0, openedBytesMax };
    assert.equal(await batches.ask(batch, asked), 'too large');
  }
  assert.equal(jobs(), 2, 'where little is allowed the thread is not needed');
});

test('a stop ends what is asked', async (t) => {
  const { batches, thread } = start(t);
  const asked = batches.ask(batchOf(100_000), { timestamp: 0, ...unbounded });
  await thread.stop();
  assert.equal(await asked, 'stopped');
});
