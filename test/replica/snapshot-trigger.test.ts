import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { SnapshotTrigger } from '../../src/replica/snapshot-trigger.ts';
import { encodeLogStarts, encodeOffsetsCommitted } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { SimClock } from '../sim/sim-clock.ts';
import { batchOf, TestMachine, type TestReplica } from './support.ts';

const mib = 1024 * 1024;

function triggerOf(imageBytes: number) {
  const clock = new SimClock(seededRandom(1));
  return { clock, trigger: new SnapshotTrigger({ clock, journalBytesMin: mib, imageBytes }) };
}

test('a large image waits for as much journal, up to a bound', () => {
  for (const [imageBytes, dueAt] of [
    [0, mib],
    [mib / 2, mib],
    [3 * mib, 3 * mib],
    [100 * mib, 8 * mib],
  ] as const) {
    const { trigger } = triggerOf(imageBytes);
    assert.ok(!trigger.isDue(dueAt - 1));
    assert.ok(trigger.isDue(dueAt));
  }
  const { trigger } = triggerOf(0);
  trigger.onWritten(2 * mib);
  assert.ok(!trigger.isDue(2 * mib - 1));
  assert.ok(trigger.isDue(2 * mib));
});

test('deletions write a large image seldom, and at last in any case', async () => {
  for (const [imageBytes, restMs] of [
    [1000, 1],
    [40 * mib, 10_000],
    [100_000 * mib, 600_000],
  ] as const) {
    const { clock, trigger } = triggerOf(imageBytes);
    assert.ok(trigger.mayFollowDeletions, 'after a start it may');
    trigger.onWritten(imageBytes);
    await clock.advance(restMs - 1);
    assert.equal(trigger.mayFollowDeletions, false);
    await clock.advance(1);
    assert.ok(trigger.mayFollowDeletions);
  }
});

/** Snapshots that are written while a record is deleted every second for two minutes. */
async function countSnapshots(node: TestReplica, machine: TestMachine): Promise<number> {
  const newest = () =>
    machine.disk
      .paths()
      .filter((path) => path.endsWith('.snapshot'))
      .at(-1);
  let count = 0;
  let last = newest();
  for (let second = 1; second <= 120; second++) {
    const meta = encodeLogStarts([{ partition: 0, offset: second, droppedBytes: 0 }]);
    await node.clock.run(node.replica.proposeAndWait({ type: EntryType.logStartsMoved, meta }));
    await node.clock.advance(1000);
    await node.clock.settle();
    if (newest() !== last) count++;
    last = newest();
  }
  return count;
}

test('a large state is not written anew after each row of deletions', async () => {
  const counts: number[] = [];
  for (const groups of [0, 80]) {
    const machine = new TestMachine();
    const node = await machine.start({ journal: { snapshotBytes: 1000 * mib } });
    await node.createTopic();
    for (let i = 0; i < 130; i++) await node.produce(batchOf(10));
    // Together 80 MiB: one image in 20 seconds.
    const metadata = 'x'.repeat(mib);
    const committed = { offset: 1, leaderEpoch: -1, metadata, commitMs: 1, expireMs: -1 };
    for (let i = 0; i < groups; i++) {
      const meta = encodeOffsetsCommitted({ groupId: `g${i}`, offsets: [[0, committed]] });
      await node.clock.run(node.replica.proposeAndWait({ type: EntryType.offsetsCommitted, meta }));
    }
    counts.push(await countSnapshots(node, machine));
    assert.deepEqual(machine.fatal, []);
  }
  const [small, large] = counts;
  assert.ok(small! >= 18 && small! <= 24, `${small} snapshots of the small state`);
  assert.ok(large! >= 4 && large! <= 7, `${large} snapshots of the large state`);
});
