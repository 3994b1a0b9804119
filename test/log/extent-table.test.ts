import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Extent, ExtentTable, noRow } from '../../src/log/extent-table.ts';
import { randomExtents } from './support.ts';

function tableOf(extents: readonly Extent[]): ExtentTable {
  const table = new ExtentTable(1_000_000);
  for (const extent of extents) table.add(extent);
  return table;
}

function extentAt(table: ExtentTable, row: number): Extent {
  return {
    partition: table.partition(row),
    baseOffset: table.baseOffset(row),
    count: table.count(row),
    maxTimestamp: table.maxTimestamp(row),
    leaderEpoch: table.leaderEpoch(row),
    position: table.position(row),
    bytes: table.bytes(row),
  };
}

test('searches by offset and epoch find what a walk over all rows finds', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const extents = randomExtents(seed, 1 + (seed % 12) * 130, 1 + (seed % 5));
    const table = tableOf(extents);
    const numbers = [...new Set(extents.map(({ partition }) => partition)), 1, 4_000_000_000];
    for (const partition of numbers) {
      const own = extents.filter((extent) => extent.partition === partition);
      const end = own.at(-1) === undefined ? 0 : own.at(-1)!.baseOffset + own.at(-1)!.count;
      for (let offset = 0; offset <= end + 1; offset++) {
        const expected = own.find((extent) => extent.baseOffset + extent.count > offset);
        expectRow(table, table.findOffset(partition, offset), expected);
      }
      for (let epoch = 0; epoch < 40; epoch++) {
        const expected = own.find((extent) => extent.leaderEpoch > epoch);
        expectRow(table, table.findEpochAbove(partition, epoch), expected);
      }
    }
  }
});

function expectRow(table: ExtentTable, row: number, expected: Extent | undefined): void {
  if (expected === undefined) assert.equal(row, noRow);
  else assert.deepEqual(extentAt(table, row), expected);
}

test('the rows of each partition are chained in order', () => {
  const extents = randomExtents(3, 3000, 4);
  const table = tableOf(extents);
  assert.equal(table.rows, extents.length);
  for (const partition of table.partitions()) {
    const chain: Extent[] = [];
    for (let row = table.first(partition); row !== noRow; row = table.next(row)) {
      chain.push(extentAt(table, row));
    }
    assert.deepEqual(
      chain,
      extents.filter((extent) => extent.partition === partition),
    );
    assert.deepEqual(extentAt(table, table.last(partition)), chain.at(-1));
  }
});

test('a search in a long chain takes a logarithmic number of steps', () => {
  const rows = 100_000;
  const table = tableOf(randomExtents(5, rows, 1));
  let steps = 0;
  const endOffset = table.endOffset.bind(table);
  table.endOffset = (row) => {
    steps++;
    return endOffset(row);
  };
  const end = endOffset(rows - 1);
  for (let i = 0; i < 200; i++) table.findOffset(0, Math.floor((end * i) / 200));
  assert.ok(steps / 200 < 4 * Math.log2(rows), `${steps / 200} steps a search`);
});
