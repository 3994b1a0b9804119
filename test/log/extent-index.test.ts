import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Random, seededRandom } from '../../src/core/random.ts';
import { BlockCache } from '../../src/log/block-cache.ts';
import { ExtentIndex, type IndexedFile, type WalkStart } from '../../src/log/extent-index.ts';
import { type Extent, ExtentTable } from '../../src/log/extent-table.ts';
import { blockBytes, IndexFile, writeIndexFile } from '../../src/log/index-file.ts';
import { newDisk, randomExtents } from './support.ts';

interface World {
  readonly extents: readonly Extent[];
  readonly index: ExtentIndex;
}

/** Random extents over several files, the older ones sealed, some of them empty of a partition. */
async function makeWorld(seed: number, cacheBlocks: number): Promise<World> {
  const random = seededRandom(seed);
  const below = (bound: number) => Math.floor(random.next() * bound);
  const extents = randomExtents(seed, 200 + below(1500), 1 + below(6));
  const files = newDisk().files();
  const indexed: IndexedFile[] = [];
  const cuts = Array.from({ length: below(7) }, () => below(extents.length)).sort((a, b) => a - b);
  let from = 0;
  for (const to of [...cuts, extents.length]) {
    const table = new ExtentTable(1_000_000);
    for (const extent of extents.slice(from, to)) table.add(extent);
    from = to;
    if (indexed.length > cuts.length - 1 || random.next() < 0.2) {
      indexed.push({ table, index: undefined });
      continue;
    }
    const name = `${indexed.length}.index`;
    await writeIndexFile(files, 'index', name, table, async () => undefined);
    indexed.push({ table: undefined, index: await IndexFile.open(files, `index/${name}`) });
  }
  return { extents, index: new ExtentIndex(indexed, new BlockCache(cacheBlocks * blockBytes)) };
}

function expectedWalk(world: World, partition: number, start: WalkStart): Extent[] {
  return world.extents.filter(
    (extent) =>
      extent.partition === partition &&
      ('offset' in start
        ? extent.baseOffset + extent.count > start.offset
        : extent.leaderEpoch > start.epochAbove),
  );
}

/** Walks with an early end after `most`, and answers what was seen. */
async function walk(
  { index }: World,
  partition: number,
  start: WalkStart,
  most: number,
  timestampMin?: number,
): Promise<Extent[]> {
  const seen: Extent[] = [];
  await index.walkLoading(
    { partition, start, ...(timestampMin === undefined ? {} : { timestampMin }) },
    (baseOffset, count, maxTimestamp, leaderEpoch, position, bytes) => {
      seen.push({ partition, baseOffset, count, maxTimestamp, leaderEpoch, position, bytes });
      return seen.length < most;
    },
  );
  return seen;
}

function randomStart(random: Random, world: World): WalkStart {
  const { baseOffset, leaderEpoch } =
    world.extents[Math.floor(random.next() * world.extents.length)]!;
  const shift = Math.floor(random.next() * 5) - 2;
  return random.next() < 0.6
    ? { offset: Math.max(0, baseOffset + shift) }
    : { epochAbove: leaderEpoch + shift };
}

for (const cacheBlocks of [1, 2, 1000]) {
  test(`walks equal a filter over all extents, with a cache of ${cacheBlocks} blocks`, async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const world = await makeWorld(seed, cacheBlocks);
      const random = seededRandom(seed);
      for (let i = 0; i < 12; i++) {
        const partition = Math.floor(random.next() * 7) * 7;
        const start = randomStart(random, world);
        const expected = expectedWalk(world, partition, start);
        const most = random.next() < 0.5 ? 1 + Math.floor(random.next() * 10) : 100_000;
        const seen = await walk(world, partition, start, most);
        assert.deepEqual(seen, expected.slice(0, most), `seed ${seed}, partition ${partition}`);
      }
    }
  });
}

test('a walk from a timestamp on leaves out only what is older', async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const world = await makeWorld(seed, 3);
    const random = seededRandom(seed);
    for (let i = 0; i < 8; i++) {
      const partition = Math.floor(random.next() * 7) * 7;
      const start = randomStart(random, world);
      const timestampMin = 5000 + Math.floor(random.next() * world.extents.length * 10);
      const isNew = ({ maxTimestamp }: Extent) => maxTimestamp >= timestampMin;
      const seen = await walk(world, partition, start, 100_000, timestampMin);
      const expected = expectedWalk(world, partition, start);
      assert.deepEqual(seen.filter(isNew), expected.filter(isNew));
      for (const extent of seen) {
        assert.ok(expected.some(({ baseOffset }) => baseOffset === extent.baseOffset));
      }
    }
  }
});

test('a walk says which block is missing, and goes through once all are loaded', async () => {
  const world = await makeWorld(8, 1000);
  const { partition } = world.extents[0]!;
  const start = { offset: 0 };
  let loads = 0;
  for (;;) {
    let count = 0;
    const missing = world.index.walk({ partition, start }, () => {
      count++;
      return true;
    });
    if (missing === undefined) {
      assert.equal(count, expectedWalk(world, partition, start).length);
      break;
    }
    await world.index.load(missing);
    loads++;
  }
  assert.ok(loads > 1);
});
