import assert from 'node:assert/strict';
import test from 'node:test';
import { StoredGroups } from '../../src/broker/stored-groups.ts';
import { systemClock } from '../../src/core/clock.ts';
import {
  decodeGroupImage,
  encodeGroupImageInSlices,
  type GroupImage,
} from '../../src/groups/group-image.ts';
import { decodeGroupDeleted, decodeGroupStored } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';

function imageOf(members: number): GroupImage {
  return {
    protocolType: 'consumer',
    generationId: 1,
    protocolName: 'range',
    leaderId: 'member-0',
    stateTimestampMs: 1000,
    members: Array.from({ length: members }, (_, i) => ({
      memberId: `member-${i}`,
      groupInstanceId: null,
      clientId: 'client',
      clientHost: '/10.0.0.1',
      rebalanceTimeoutMs: 1000,
      sessionTimeoutMs: 1000,
      protocols: [{ name: 'range', metadata: Buffer.alloc(500) }],
      assignment: Buffer.alloc(100),
    })),
  };
}

/** A journal that applies when it is told to, and turns that come when the test says so. */
class World {
  readonly proposed: string[] = [];
  readonly #soon: (() => void)[] = [];
  readonly stored = new StoredGroups(
    { ...systemClock, soon: (callback) => void this.#soon.push(callback) },
    {
      propose: ({ type, meta }, done) => {
        const isDeleted = type === EntryType.groupDeleted;
        const { groupId, image } = isDeleted
          ? { groupId: decodeGroupDeleted(meta), image: null }
          : decodeGroupStored(meta);
        const members = image === null ? null : decodeGroupImage(image).members.length;
        this.proposed.push(`${groupId}: ${members}`);
        this.#soon.push(() => done?.('applied'));
      },
    },
  );

  get pending(): number {
    return this.#soon.length;
  }

  next(): void {
    for (const callback of this.#soon.splice(0)) callback();
  }
}

test('a group of few members is stored in the turn in which it is given', () => {
  const world = new World();
  let isDurable = false;
  world.stored.store('small', imageOf(3), (done) => {
    isDurable = done;
  });
  assert.deepEqual(world.proposed, ['small: 3']);
  world.next();
  assert.ok(isDurable);
});

test('a large one takes several turns, and what comes meanwhile keeps its place behind it', () => {
  const world = new World();
  const done: string[] = [];
  world.stored.store('large', imageOf(2000), () => done.push('stored'));
  world.stored.store('small', imageOf(1), () => done.push('small'));
  world.stored.store('large', null, () => done.push('deleted'));
  assert.deepEqual(world.proposed, []);
  let turns = 0;
  for (; world.proposed.length === 0; turns++) world.next();
  assert.ok(turns > 1);
  assert.deepEqual(world.proposed, ['large: 2000', 'small: 1', 'large: null']);
  while (world.pending > 0) world.next();
  assert.deepEqual(done, ['stored', 'small', 'deleted']);
});

test('what is encoded in several slices is the whole image', () => {
  const image = imageOf(2000);
  const slices = encodeGroupImageInSlices(image);
  let count = 1;
  let next = slices.next();
  for (; next.done !== true; next = slices.next()) count++;
  assert.ok(count > 1);
  const { members, ...group } = decodeGroupImage(next.value);
  const { members: expected, ...expectedGroup } = image;
  assert.deepEqual(group, expectedGroup);
  assert.deepEqual(
    members.map(({ generations: _given, ...member }) => member),
    expected,
  );
});
