import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { encodeAssignment, readAssignment } from '../../src/groups/consumer-protocol.ts';
import { withLeftovers } from '../../src/groups/lane-plan.ts';
import { assignmentOf, assignmentText } from './classic/lane-text.ts';

/** `a:t/0+t/1 b:-` */
function planOf(text: string): Map<string, Buffer> {
  const pairs = text.split(' ').filter((pair) => pair !== '');
  return new Map(pairs.map((pair) => [pair.split(':')[0]!, assignmentOf(pair.split(':')[1]!)]));
}

function planText(plan: ReadonlyMap<string, Buffer>): string {
  return [...plan].map(([memberId, bytes]) => `${memberId}:${assignmentText(bytes)}`).join(' ');
}

interface Case {
  readonly name: string;
  readonly plan: string;
  readonly lanes: Readonly<Record<string, number>>;
  /** Present members, and what they subscribe to. */
  readonly present: Readonly<Record<string, readonly string[]>>;
  readonly expected: string;
}

const t = ['t'];
const cases: readonly Case[] = [
  {
    name: 'nothing is left over',
    plan: 'a:t/0+t/1 b:t/2',
    lanes: { t: 3 },
    present: { a: t, b: t },
    expected: 'a:t/0+t/1 b:t/2',
  },
  {
    name: 'what an absent member has to give up goes to those with the fewest',
    plan: 'a:t/0+t/1 b:- c:t/6',
    lanes: { t: 7 },
    present: { b: t, c: t },
    expected: 'a:t/0+t/1 b:t/2+t/3+t/5 c:t/6+t/4',
  },
  {
    name: 'an absent member that has least gets nothing more',
    plan: 'a:- b:t/0+t/1',
    lanes: { t: 3 },
    present: { b: t },
    expected: 'a:- b:t/0+t/1+t/2',
  },
  {
    name: 'a present member that the plan leaves out',
    plan: 'a:t/0',
    lanes: { t: 2 },
    present: { a: t, b: t },
    expected: 'a:t/0 b:t/1',
  },
  {
    name: 'only those who subscribe to the topic',
    plan: 'a:- b:u/0',
    lanes: { t: 2, u: 3 },
    present: { a: t, b: ['u'] },
    expected: 'a:t/0+t/1 b:u/0+u/1+u/2',
  },
  {
    name: 'nobody subscribes to the topic',
    plan: 'a:t/0',
    lanes: { t: 1, u: 2 },
    present: { a: t },
    expected: 'a:t/0',
  },
  { name: 'nobody is present', plan: 'a:t/0', lanes: { t: 2 }, present: {}, expected: 'a:t/0' },
  {
    name: 'lanes that do not exist are no concern',
    plan: 'a:t/0+t/9',
    lanes: { t: 2 },
    present: { a: t },
    expected: 'a:t/0+t/9+t/1',
  },
  {
    name: 'a plan without anything',
    plan: '',
    lanes: { t: 3 },
    present: { a: t, b: t },
    expected: 'a:t/0+t/2 b:t/1',
  },
];

for (const { name, plan, lanes, present, expected } of cases) {
  test(`leftover lanes: ${name}`, () => {
    const candidates = Object.entries(present).map(([memberId, topics]) => {
      return { memberId, topics: new Set(topics) };
    });
    const completed = withLeftovers(planOf(plan), new Map(Object.entries(lanes)), candidates);
    assert.equal(planText(completed), expected);
  });
}

test('version and user data stay as the leader wrote them', () => {
  const userData = Buffer.from('sticky');
  const bytes = encodeAssignment({ version: 3, partitions: new Map([['t', [0]]]), userData });
  const plan = new Map([['a', bytes]]);
  const candidates = [
    { memberId: 'a', topics: new Set(t) },
    { memberId: 'b', topics: new Set(t) },
  ];
  const completed = withLeftovers(plan, new Map([['t', 4]]), candidates);
  const a = readAssignment(completed.get('a')!)!;
  assert.deepEqual([a.version, a.userData, a.partitions], [3, userData, new Map([['t', [0, 3]]])]);
  assert.equal(readAssignment(completed.get('b')!)!.version, 3);
});

test('a plan with bytes that are no assignment stays as it is', () => {
  const plan = new Map([['a', Buffer.from('custom')]]);
  const candidates = [{ memberId: 'a', topics: new Set(t) }];
  assert.equal(withLeftovers(plan, new Map([['t', 2]]), candidates), plan);
});

test('every lane has one owner, and what the leader gave stays given', () => {
  const random = seededRandom(11);
  const below = (max: number) => Math.floor(random.next() * max);
  for (let round = 0; round < 300; round++) {
    const laneCount = 1 + below(60);
    const members = Array.from({ length: 1 + below(8) }, (_, i) => `m${i}`);
    const given = new Map<string, number[]>(members.map((memberId) => [memberId, []]));
    for (let lane = 0; lane < laneCount; lane++) {
      if (below(3) > 0) given.get(members[below(members.length)]!)!.push(lane);
    }
    const plan = new Map(
      [...given].map(([memberId, lanes]) => {
        const partitions = new Map([['t', lanes]]);
        return [memberId, encodeAssignment({ version: 0, partitions, userData: null })];
      }),
    );
    const present = members.filter(() => below(2) === 0);
    const candidates = present.map((memberId) => ({ memberId, topics: new Set(t) }));
    const completed = withLeftovers(plan, new Map([['t', laneCount]]), candidates);
    const owned = members.map((memberId) => {
      return readAssignment(completed.get(memberId)!)!.partitions.get('t') ?? [];
    });
    for (const [i, lanes] of owned.entries()) {
      const before = given.get(members[i]!)!;
      assert.deepEqual(lanes.slice(0, before.length), before);
      if (!present.includes(members[i]!)) assert.equal(lanes.length, before.length);
    }
    const all = owned.flat();
    assert.equal(new Set(all).size, all.length);
    if (present.length === 0) continue;
    assert.equal(all.length, laneCount);
    assertFair(present.map((id) => [given.get(id)!.length, owned[members.indexOf(id)]!.length]));
  }
});

/** Whoever got more has no more than one above anybody else who could have got it. */
function assertFair(counts: readonly (readonly number[])[]): void {
  const least = Math.min(...counts.map(([, after]) => after!));
  for (const [before, after] of counts) {
    if (after! > before!) assert.ok(after! <= least + 1, JSON.stringify(counts));
  }
}
