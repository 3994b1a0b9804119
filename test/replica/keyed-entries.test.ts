/** Entries of keyed delivery with dead letters are stored, read and found again like all others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { LogReader, ReadPlan } from '../../src/log/log-reader.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { encodeKeyedChange, type KeyedEffect } from '../../src/state/keyed/effects.ts';
import { TestMachine, type TestReplica } from './support.ts';

const topicId = '00112233445566778899aabbccddeeff';

/** A dead letter of 600 bytes in partition 2, and a grant. */
async function proposeDeadLetter(node: TestReplica, effects: readonly KeyedEffect[]) {
  const records = [{ key: null, value: Buffer.alloc(600, 7), timestamp: 1000 }];
  const { leaderEpoch } = node.replica;
  const batch = buildBatch({ records, baseOffset: node.end(2), leaderEpoch }, codecs);
  const meta = encodeKeyedChange({ groupId: 'g', topicId, effects, appendedMs: 5 });
  const command = { type: EntryType.keyed, meta, batches: [batch], partitions: [2] };
  assert.equal(await node.clock.run(node.replica.proposeAndWait(command)), 'applied');
}

async function offsetsOf(node: TestReplica): Promise<number[]> {
  const plan = new ReadPlan();
  const reader = new LogReader(node.replica.journal);
  const limits = { bytesMax: 1_000_000, oneAtLeast: true, offsetEnd: node.end(2) };
  await node.clock.run(reader.planLoading(2, 0, limits, plan));
  const read = await node.clock.run(reader.read([plan]));
  const pieces = read?.pieces[0] ?? [];
  const offsets = pieces.map((piece) => Number(piece.readBigInt64BE(0)));
  read?.release();
  return offsets;
}

for (const snapshotBytes of [2000, 1_000_000]) {
  test(`dead letters survive a restart, snapshots every ${snapshotBytes} bytes`, async () => {
    const machine = new TestMachine();
    // Several files, so that some are sealed and their extents come from index files.
    const options = { journal: { fileBytesMax: 4096, snapshotBytes } };
    const node = await machine.start(options);
    await node.createTopic();
    const first: readonly KeyedEffect[] = [
      { kind: 'opened', slot: 1, laneBase: 0, starts: [] },
      { kind: 'rangeOpened', lane: 0, memberId: 'm' },
    ];
    await proposeDeadLetter(node, first);
    for (let i = 0; i < 19; i++) {
      await proposeDeadLetter(node, [{ kind: 'granted', lane: 0, runs: [2, 0, i * 2] }]);
    }
    await node.clock.settle();
    const expected = Array.from({ length: 20 }, (_, i) => i);
    assert.deepEqual(await offsetsOf(node), expected);
    machine.kill();
    const again = await machine.start(options);
    assert.equal(again.end(2), 20);
    assert.deepEqual(await offsetsOf(again), expected);
    const { grants } = again.replica.state.keyed.get('g', topicId)!.present(0)!;
    assert.deepEqual([grants.length, grants.records], [1, 38]);
    await proposeDeadLetter(again, [{ kind: 'finished', lane: 0, from: 1, to: 11 }]);
    assert.equal(again.replica.state.keyed.get('g', topicId)!.finished(0).low, 10);
    assert.deepEqual(machine.fatal, []);
  });
}
