import assert from 'node:assert/strict';
import test from 'node:test';
import { silentLogger } from '../../src/core/logger.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { encodeKeyedChange } from '../../src/state/keyed/effects.ts';
import { slotsMax } from '../../src/state/keyed/keyed-table.ts';
import { KeyedMember } from './keyed-member.ts';
import { startTestNode } from './support.ts';

test('a group beyond the slots of its topic is refused, and operators are told', async (t) => {
  const errors: string[] = [];
  const log = { ...silentLogger, error: (_: object, message: string) => errors.push(message) };
  const node = await startTestNode(t, { log });
  const topic = await node.createTopic('orders', 1, { 'delivery.mode': 'keyed' });
  const { replica } = node.broker;
  for (let slot = 1; slot <= slotsMax; slot++) {
    const effects = [{ kind: 'opened' as const, slot, laneBase: 1, starts: [] }];
    const change = { groupId: `g${slot}`, topicId: topic.id, effects, appendedMs: 0 };
    replica.propose({ type: EntryType.keyed, meta: encodeKeyedChange(change) });
  }
  await replica.settled();
  const member = await KeyedMember.connect(node, { groupId: 'late', topics: ['orders'] });
  for (let i = 0; i < 2; i++) await assert.rejects(member.join(), /GROUP_MAX_SIZE_REACHED|81/);
  assert.equal(errors.length, 1);
  assert.match(errors[0]!, /no slot is left/);
});
