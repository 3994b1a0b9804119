/** How long the turns of the event loops get with a million partitions, while snapshots are written. */
import assert from 'node:assert/strict';
import { load } from './load.ts';
import type { KeylaneNodes } from './nodes.ts';

const spread = { prefix: 'spread', topics: 1000, partitions: 1000 };
const batches = { batches: 200_000, recordBytes: 1000, batchBytes: 4000, connections: 4 };
const settings = ['journal.snapshot.bytes=67108864', 'max.partitions=1001000'];

export async function manyPartitions(
  start: (settings: readonly string[]) => KeylaneNodes,
): Promise<void> {
  const nodes = start(settings);
  try {
    await nodes.startAll();
    const leader = await nodes.whole();
    load(nodes, leader, 'create', spread);
    for (const id of nodes.ids) await nodes.turns(id);
    const before = nodes.ids.map((id) => nodes.snapshotMs(id));
    const { records, seconds } = load(nodes, leader, 'produce', { ...spread, ...batches });
    console.log(`a million partitions: ${(records / seconds / 1000).toFixed(0)} k records/s`);
    for (const [i, id] of nodes.ids.entries()) {
      assert.ok(nodes.snapshotMs(id) > before[i]!, 'a snapshot was written meanwhile');
      const { turnsMs, loopDelayMs } = await nodes.turns(id);
      const what = id === leader ? 'the leader' : 'a follower';
      const own = `turns p99.9 ${turnsMs.p999} ms, longest ${turnsMs.max} ms`;
      const all = `with what else ran ${loopDelayMs.p999} and ${loopDelayMs.max} ms`;
      console.log(`${what}: ${own}; ${all}`);
    }
  } finally {
    nodes.stop();
  }
}
