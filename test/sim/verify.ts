import assert from 'node:assert/strict';
import type { Replica } from '../../src/replica/replica.ts';
import { readBytes } from '../log/support.ts';
import type { Model, ModelBatch } from './model.ts';
import type { SimClock } from './sim-clock.ts';

/** Compares a replica that has just started, or is idle, with what the model says. */
export async function verify(replica: Replica, model: Model, clock: SimClock): Promise<void> {
  assert.equal(replica.state.appliedIndex, model.durableIndex);
  assert.deepEqual(replica.state.image(), model.state.image(), 'the state is that of the model');
  for (const topic of model.state.topics.all()) {
    for (const partition of topic.partitions) await verifyLog(replica, model, partition, clock);
  }
}

/** From its log start on, a partition reads back byte for byte and without a gap. */
async function verifyLog(
  replica: Replica,
  model: Model,
  partition: number,
  clock: SimClock,
): Promise<void> {
  const { partitions } = model.state.topics;
  const logStart = partitions.logStart(partition);
  const end = partitions.end(partition);
  const expected = (model.batches.get(partition) ?? []).filter(
    (batch) => batch.endOffset > logStart,
  );
  const found: { position: number; batch: ModelBatch; bytes: number }[] = [];
  let next = expected[0]?.baseOffset ?? end;
  const walking = replica.journal.extents.walkLoading(
    { partition, start: { offset: logStart } },
    (baseOffset, count, _maxTimestamp, _leaderEpoch, position, bytes) => {
      assert.equal(baseOffset, next, `partition ${partition} goes on at offset ${next}`);
      found.push({ position, bytes, batch: expected[found.length]! });
      next = baseOffset + count;
      return true;
    },
  );
  await clock.run(walking);
  assert.equal(next, end, `partition ${partition} is whole`);
  for (const { position, bytes, batch } of found) {
    const read = await clock.run(readBytes(replica.journal, position, bytes));
    assert.ok(read.equals(batch.bytes), `batch ${batch.baseOffset} of ${partition} is as produced`);
  }
}
