import type { Clock } from '../../src/core/clock.ts';
import { codecs } from '../../src/core/codecs.ts';
import { seededRandom } from '../../src/core/random.ts';
import { nodeFiles } from '../../src/log/node-files.ts';
import { ProducePlanner } from '../../src/replica/produce-planner.ts';
import { type GroupOptions, Replica } from '../../src/replica/replica.ts';

/**
 * Opens the tenant of a data folder, with a clock that only moves when it is told to. `group`: as a
 * member of a cluster, though the only one.
 */
export async function openGolden(folder: string, nowMs = 1_800_000_000_000, group?: GroupOptions) {
  const time = { nowMs };
  const clock: Clock = {
    monotonicMs: () => time.nowMs,
    wallMs: () => time.nowMs,
    after: () => () => undefined,
    soon: (callback) => void setImmediate(callback),
  };
  const { replica } = await Replica.open({
    files: nodeFiles,
    folder,
    clock,
    random: seededRandom(1),
    voter: '1:golden',
    journal: {
      sync: 'always',
      syncIntervalMs: 50,
      fileBytesMax: 16 * 1024,
      fileExtentsMax: 1000,
      recentBytesMax: 1,
      indexCacheBytesMax: 64 * 1024,
      snapshotBytes: 20_000,
    },
    disk: { lowWaterBytes: 0, reserveBytes: 0 },
    ...(group !== undefined && { group }),
    onFatal: (error) => {
      throw error;
    },
  });
  return { replica, clock, time, planner: new ProducePlanner(replica, clock, codecs, 1_000_000) };
}
