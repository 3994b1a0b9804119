import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FilePort, JournalFile } from '../../src/log/file-port.ts';
import { JournalSyncs } from '../../src/log/journal-syncs.ts';
import { newDisk } from './support.ts';

/** A file whose syncs end when the test says so. */
class SlowFile {
  readonly #waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];
  syncs = 0;
  closed = 0;

  readonly file: Pick<JournalFile, 'sync' | 'close'> = {
    sync: () => {
      this.syncs++;
      return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    },
    close: async () => {
      this.closed++;
    },
  };

  end(error?: Error): void {
    const { resolve, reject } = this.#waiting.shift()!;
    if (error === undefined) resolve();
    else reject(error);
  }
}

const opened = () => new Promise<void>((resolve) => setImmediate(resolve));

function setUp(options: { readonly opens: boolean } = { opens: true }) {
  const first = new SlowFile();
  const second = new SlowFile();
  const failures: unknown[] = [];
  const at = { end: 0 };
  const files: FilePort = {
    ...newDisk().files(),
    async open() {
      if (!options.opens) throw new Error('no descriptors left');
      return second.file as JournalFile;
    },
  };
  const syncs = new JournalSyncs({
    files,
    written: () => at.end,
    failed: (error) => {
      failures.push(error);
      return error as Error;
    },
  });
  syncs.use('journal/1', first.file as JournalFile, 0);
  /** Flushes what is written up to `end`; tells how it went. */
  const flush = (end: number): { outcome: string } => {
    at.end = end;
    const flushing = { outcome: 'under way' };
    syncs.flush().then(
      () => {
        flushing.outcome = 'done';
      },
      () => {
        flushing.outcome = 'failed';
      },
    );
    return flushing;
  };
  return { syncs, first, second, failures, flush };
}

/** With the second descriptor open. */
async function setUpTwo() {
  const all = setUp();
  all.flush(10);
  all.flush(11);
  await opened();
  all.first.end();
  all.second.end();
  await opened();
  return all;
}

test('what is written while a sync is under way needs a sync that begins later', async () => {
  const { syncs, first, flush } = setUp({ opens: false });
  const early = flush(10);
  const late = flush(20);
  await opened();
  assert.equal(first.syncs, 1);
  first.end();
  await opened();
  assert.deepEqual([early.outcome, late.outcome, syncs.synced], ['done', 'under way', 10]);
  assert.equal(first.syncs, 2);
  first.end();
  await opened();
  assert.deepEqual([late.outcome, syncs.synced], ['done', 20]);
});

test('two syncs are under way, and the later one covers the earlier, never the other way', async () => {
  const { syncs, first, second, flush } = await setUpTwo();
  const early = flush(20);
  const late = flush(30);
  const latest = flush(40);
  await opened();
  assert.deepEqual([first.syncs, second.syncs], [2, 2]);
  second.end();
  await opened();
  assert.deepEqual([late.outcome, latest.outcome, syncs.synced], ['done', 'under way', 30]);
  first.end();
  await opened();
  assert.deepEqual([early.outcome, syncs.synced], ['done', 30]);
  assert.equal(first.syncs + second.syncs, 5);
});

test('after a failure nothing is durable any more, and nothing is tried again', async () => {
  const { syncs, first, second, failures, flush } = await setUpTwo();
  const early = flush(20);
  const late = flush(30);
  await opened();
  first.end(new Error('EIO'));
  await opened();
  second.end();
  await opened();
  const after = flush(40);
  await opened();
  assert.deepEqual([early.outcome, late.outcome, after.outcome], ['failed', 'failed', 'failed']);
  assert.deepEqual([failures.length, syncs.synced], [1, 11]);
  assert.deepEqual([first.syncs, second.syncs], [2, 2]);
});

test('release waits for what is under way and closes the second descriptor', async () => {
  const { syncs, first, second, flush } = await setUpTwo();
  flush(20);
  await opened();
  let isReleased = false;
  const releasing = syncs.release().then(() => {
    isReleased = true;
  });
  await opened();
  assert.equal(isReleased, false);
  first.end();
  await releasing;
  assert.deepEqual([first.closed, second.closed], [0, 1]);
});
