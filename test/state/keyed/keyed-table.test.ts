import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ByteReader, ByteWriter } from '../../../src/core/bytes.ts';
import type { KeyedEffect } from '../../../src/state/keyed/effects.ts';
import { KeyedTable, ledgerKey, slotsMax } from '../../../src/state/keyed/keyed-table.ts';

const orders = '0a'.repeat(16);
const chats = '0b'.repeat(16);

function apply(table: KeyedTable, groupId: string, topicId: string, ...effects: KeyedEffect[]) {
  table.apply({ groupId, topicId, effects, appendedMs: 0 });
}

function open(table: KeyedTable, groupId: string, topicId: string, slot?: number): void {
  const laneBase = table.laneBaseMin;
  const effect = { kind: 'opened', laneBase, starts: [] } as const;
  apply(table, groupId, topicId, { ...effect, slot: slot ?? table.freeSlot(topicId)! });
}

/** Grants `count` records in lane 0, numbered from one above the lane base on. */
function grant(table: KeyedTable, groupId: string, topicId: string, count: number): void {
  const runs = [count, 0, 0];
  const opened = { kind: 'rangeOpened', lane: 0, memberId: 'm' } as const;
  apply(table, groupId, topicId, opened, { kind: 'granted', lane: 0, runs });
}

test('a ledger is found by group, by topic and by slot', () => {
  const table = new KeyedTable();
  open(table, 'a', orders);
  open(table, 'a', chats);
  open(table, 'b', orders);
  const ledger = table.get('b', orders)!;
  assert.deepEqual([ledger.slot, ledger.groupId, ledger.topicId], [2, 'b', orders]);
  assert.equal(table.bySlot(orders, 2), ledger);
  assert.equal(table.bySlot(chats, 2), undefined);
  assert.deepEqual([...table.ofGroup('b')], [ledger]);
  assert.deepEqual([...table.ofTopic(orders)], [table.get('a', orders), ledger]);
  assert.deepEqual([...table.groups()], ['a', 'b']);
  assert.deepEqual([...table.ofGroup('none')], []);
  assert.deepEqual([...table.ofTopic('none')], []);
  assert.equal(table.size, 3);
});

test('the lowest free slot is taken, and there are 511', () => {
  const table = new KeyedTable();
  for (let i = 1; i <= slotsMax; i++) {
    assert.equal(table.freeSlot(orders), i);
    open(table, `group-${i}`, orders);
  }
  assert.equal(slotsMax * 2 ** 44 + 2 ** 44, 2 ** 53);
  assert.equal(table.freeSlot(orders), undefined);
  assert.equal(table.freeSlot(chats), 1);
  apply(table, 'group-300', orders, { kind: 'closed' });
  apply(table, 'group-20', orders, { kind: 'closed' });
  assert.equal(table.freeSlot(orders), 20);
});

test('lane numbers go on above those of every ledger that is gone', () => {
  const table = new KeyedTable();
  open(table, 'a', orders);
  grant(table, 'a', orders, 100);
  open(table, 'b', orders);
  grant(table, 'b', orders, 7);
  assert.equal(table.laneBaseMin, 0);
  apply(table, 'a', orders, { kind: 'closed' });
  assert.equal(table.laneBaseMin, 101);
  // Less than before: it never goes down.
  apply(table, 'b', orders, { kind: 'closed' });
  assert.equal(table.laneBaseMin, 101);
  open(table, 'a', chats);
  grant(table, 'a', chats, 1);
  assert.equal(table.get('a', chats)!.present(0)!.start, 102);
  table.removeTopic(chats);
  assert.equal(table.laneBaseMin, 103);
  open(table, 'a', chats);
  grant(table, 'a', chats, 1);
  table.removeGroup('a');
  assert.equal(table.laneBaseMin, 105);
  assert.equal(table.size, 0);
  assert.deepEqual([...table.groups()], []);
});

test('a group or topic that is removed takes its ledgers along, and no others', () => {
  const table = new KeyedTable();
  for (const groupId of ['a', 'b'])
    for (const topicId of [orders, chats]) open(table, groupId, topicId);
  table.removeGroup('a');
  assert.deepEqual(
    [...table.keys()].sort(),
    [ledgerKey('b', orders), ledgerKey('b', chats)].sort(),
  );
  assert.equal(table.freeSlot(orders), 1);
  assert.equal(table.bySlot(orders, 1), undefined);
  table.removeTopic(orders);
  assert.deepEqual([...table.keys()], [ledgerKey('b', chats)]);
  table.removeTopic(orders);
  table.removeGroup('none');
  assert.equal(table.size, 1);
});

test('effects on a ledger that is not there are void, and so is opening one twice', () => {
  const table = new KeyedTable();
  grant(table, 'a', orders, 5);
  apply(table, 'a', orders, { kind: 'closed' });
  assert.deepEqual([table.size, table.laneBaseMin], [0, 0]);
  open(table, 'a', orders);
  grant(table, 'a', orders, 5);
  open(table, 'a', orders, 9);
  open(table, 'b', orders, 1);
  assert.equal(table.get('b', orders), undefined);
  assert.equal(table.get('a', orders)!.laneEnd, 6);
  assert.equal(table.bySlot(orders, 9), undefined);
});

test('one change may close a ledger and open it again', () => {
  const table = new KeyedTable();
  open(table, 'a', orders);
  grant(table, 'a', orders, 5);
  const again = { kind: 'opened', slot: 1, laneBase: 6, starts: [[0, 3]] } as const;
  apply(table, 'a', orders, { kind: 'closed' }, again);
  assert.equal(table.get('a', orders)!.finished(0).low, 3);
  assert.equal(table.get('a', orders)!.lanes.size, 0);
});

test('a ledger is written and read by its key', () => {
  const table = new KeyedTable();
  open(table, 'a', orders, 3);
  grant(table, 'a', orders, 5);
  const writer = new ByteWriter();
  table.writeLedger(writer, ledgerKey('a', orders));
  const other = new KeyedTable();
  other.readLedger(new ByteReader(writer.finish()));
  assert.equal(other.bySlot(orders, 3)!.laneEnd, 6);
  assert.deepEqual([...other.keys()], [...table.keys()]);
});
