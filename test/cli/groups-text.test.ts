import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GroupDetails, TopicView } from '../../src/broker/admin/group-view.ts';
import { ageText, groupLines, groupsLines } from '../../src/cli/groups-text.ts';
import { table } from '../../src/cli/text-table.ts';

const keyed: TopicView = {
  topic: 'orders',
  mode: 'keyed',
  configuredMode: 'keyed',
  slot: 1,
  lanes: 32,
  unfinished: 120,
  ready: 100,
  granted: 8,
  inHand: 3,
  leasedKeys: 7,
  pinnedKeys: 1,
  held: 10,
  heldByPinned: 1,
  waiting: { retry: 1, suspect: 0, deadLetter: 0, halted: 0 },
  heldByWaiting: 1,
  oldestLease: {
    ...{ key: 'order 7', member: 'm-1', client: 'java' },
    ...{ ageMs: 12_345, partition: 3, offset: 99 },
  },
  delivered: 500,
  redelivered: 4,
  finished: 490,
  failedAttempts: 2,
  deadLetters: 0,
  commitsBeyond: 0,
  hints: ['keys wait'],
};

const log: TopicView = { ...keyed, mode: 'log', oldestLease: null, hints: [], topic: 'plain' };

test('all groups: a line for each topic, and what to do below', () => {
  const group = { group: 'g', state: 'Stable', protocolType: 'consumer', generation: 3 };
  const lines = groupsLines([
    { ...group, group: 'none', members: 0, topics: [] },
    { ...group, members: 2, topics: [keyed, log] },
  ]);
  assert.deepEqual(
    lines.map((line) => line.trim().split(/ {2,}/)),
    [
      [
        ...['GROUP', 'TOPIC', 'MODE', 'CONSUMERS', 'LANES', 'UNFINISHED', 'READY', 'HELD'],
        ...['LEASED KEYS', 'WAITING', 'REDELIVERED', 'DEAD LETTERS', 'OLDEST LEASE'],
      ],
      [
        ...['g', 'orders', 'keyed', '2', '32', '120', '100', '11', '7', '1', '4', '0'],
        '12 s, key "order 7", 3:99, m-1',
      ],
      ['g', 'plain', 'log (to be keyed)', '2', '32', '120', ...Array<string>(7).fill('-')],
      ['none', ...Array<string>(12).fill('-')],
      [''],
      ['g, orders: keys wait'],
    ],
  );
  assert.deepEqual(groupsLines([]), ['no groups']);
});

test('one group: its members and the partitions that are not finished', () => {
  const group: GroupDetails = {
    ...{ group: 'g', state: 'Stable', protocolType: 'consumer', generation: 3 },
    members: [{ member: 'm-1', instance: null, client: 'app', host: '/10.0.0.1' }],
    topics: [
      {
        ...keyed,
        partitions: [
          { partition: 0, logStart: 0, end: 9, low: 9, finishedAbove: 0, unfinished: 0 },
          { partition: 3, logStart: 0, end: 300, low: 99, finishedAbove: 81, unfinished: 120 },
        ],
        members: [
          {
            ...{ member: 'm-1', client: 'java', lanes: [0, 1], inHand: 3, window: 16 },
            ...{ handledNotCommitted: 5, leaseMs: null, oldestLease: null },
          },
        ],
      },
    ],
  };
  const lines = groupLines(group).map((line) => line.split(/ {2,}/));
  assert.deepEqual(lines[0], ['g: Stable, generation 3, consumers: 1']);
  assert.deepEqual(
    lines[6],
    ['orders', 'm-1', 'java', '0,1', '     3', '    16'].map((w) => w.trim()).concat('5', '-'),
  );
  assert.deepEqual(
    lines[9]?.map((word) => word.trim()),
    ['orders', '3', '0', '300', '99', '81', '120'],
  );
  assert.deepEqual(lines.at(-1), ['orders: keys wait']);
});

test('columns are as wide as they have to be; numbers stand at the right', () => {
  const rows = [
    ['a', 1],
    ['long name', 1234],
  ];
  assert.deepEqual(table(['NAME', 'N'], rows), [
    'NAME          N',
    'a             1',
    'long name  1234',
  ]);
});

test('what clients named cannot move the cursor', () => {
  assert.deepEqual(table(['A'], [['x\u001b[2J\ny']]), ['A', 'x�[2J�y']);
});

test('ages are short', () => {
  const cases: readonly (readonly [number, string])[] = [
    [5, '5 ms'],
    [12_345, '12 s'],
    [300_000, '5 min'],
    [18_000_000, '5 h'],
  ];
  for (const [ms, text] of cases) assert.equal(ageText(ms), text);
});
