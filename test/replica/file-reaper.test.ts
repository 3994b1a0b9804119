import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { encodeLogStarts, encodeTopicDeleted } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { readBytes } from '../log/support.ts';
import { batchOf, TestMachine, type TestReplica } from './support.ts';

async function filled(batches: number): Promise<{ machine: TestMachine; node: TestReplica }> {
  const machine = new TestMachine();
  const node = await machine.start();
  await node.createTopic();
  for (let i = 0; i < batches; i++) await node.produce(batchOf(1000), i % 3);
  return { machine, node };
}

function journalFiles(machine: TestMachine): string[] {
  return machine.disk.paths().filter((path) => path.endsWith('.journal'));
}

async function moveLogStart(node: TestReplica, partition: number, offset: number): Promise<void> {
  const meta = encodeLogStarts([{ partition, offset, droppedBytes: 0 }]);
  await node.clock.run(node.replica.proposeAndWait({ type: EntryType.logStartsMoved, meta }));
}

/** Deletions are followed up after a while. */
async function waitForRemoval(node: TestReplica): Promise<void> {
  await node.clock.settle();
  await node.clock.advance(5000);
  await node.clock.settle();
}

/** Bytes of every extent from the log start on can be read. */
async function readAll(node: TestReplica, partition: number): Promise<number> {
  const { journal, state } = node.replica;
  const found: { position: number; bytes: number }[] = [];
  let next = state.topics.partitions.logStart(partition);
  const start = { offset: next };
  const walking = journal.extents.walkLoading(
    { partition, start },
    (base, count, _max, _epoch, position, bytes) => {
      assert.equal(base, next);
      next += count;
      found.push({ position, bytes });
      return true;
    },
  );
  await node.clock.run(walking);
  assert.equal(next, node.end(partition));
  for (const range of found) {
    await node.clock.run(readBytes(journal, range.position, range.bytes));
  }
  return found.length;
}

test('a file goes when nothing in it is alive, and not before', async () => {
  const { machine, node } = await filled(60);
  const before = journalFiles(machine).length;
  assert.ok(before > 6);
  await moveLogStart(node, 0, 20);
  await moveLogStart(node, 1, 20);
  await waitForRemoval(node);
  assert.equal(journalFiles(machine).length, before, 'every file holds records of partition 2');
  await moveLogStart(node, 2, 10);
  await waitForRemoval(node);
  const left = journalFiles(machine).length;
  assert.ok(left < before && left > 3, `${left} of ${before} files are left`);
  assert.equal(await readAll(node, 2), 10);
  machine.crash();
  const again = await machine.start();
  assert.equal(await readAll(again, 2), 10);
  assert.equal(await readAll(again, 0), 0);
});

test('a deleted topic frees its files, and they stay away after a start', async () => {
  const { machine, node } = await filled(60);
  const meta = encodeTopicDeleted('00112233445566778899aabbccddeeff');
  await node.clock.run(node.replica.proposeAndWait({ type: EntryType.topicDeleted, meta }));
  await waitForRemoval(node);
  assert.equal(journalFiles(machine).length, 1, 'the file that is written to stays');
  machine.crash();
  await machine.start();
  assert.equal(journalFiles(machine).length, 1);
});

test('whatever the log starts are, what is alive stays readable', async () => {
  for (let seed = 1; seed <= 8; seed++) {
    const random = seededRandom(seed);
    const { machine, node } = await filled(40);
    let current = node;
    for (let round = 0; round < 5; round++) {
      for (const partition of [0, 1, 2]) {
        const offset = Math.floor(random.next() * (current.end(partition) + 1));
        await moveLogStart(current, partition, offset);
        await current.produce(batchOf(1 + Math.floor(random.next() * 2000)), partition);
      }
      await waitForRemoval(current);
      for (const partition of [0, 1, 2]) await readAll(current, partition);
      if (random.next() < 0.5) continue;
      machine.crash();
      current = await machine.start();
      for (const partition of [0, 1, 2]) await readAll(current, partition);
    }
  }
});
