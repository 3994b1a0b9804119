import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from '../../src/protocol/schema/44-incremental-alter-configs.ts';
import { KeyedMember, numbersPerSlot, send, texts } from './keyed-member.ts';
import { startTestNode } from './support.ts';

test('the members of the first group that is switched to keyed delivery are told to come anew', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 1, { 'retention.ms': '-1' });
  const client = await node.connect();
  const member = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  await member.own(0);
  assert.equal(await member.heartbeat(), ErrorCode.NONE);
  const configs = [{ name: 'delivery.mode', configOperation: 0, value: 'keyed' }];
  const resources = [{ resourceType: 2, resourceName: 'orders', configs }];
  await client.ask(incrementalAlterConfigsRequest, incrementalAlterConfigsResponse, 1, {
    ...{ resources, validateOnly: false },
  });
  for (let i = 0; (await member.heartbeat()) === ErrorCode.NONE; i++) {
    assert.ok(i < 100, 'it is told soon');
    node.clock.advance(50);
  }
  await member.own(0);
  assert.ok(member.positions.get(0)! > numbersPerSlot);
  await send(client, 'orders', ['a=1']);
  assert.deepEqual(texts((await member.await()).records), ['a=1']);
});
