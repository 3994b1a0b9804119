import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  findCoordinatorRequest,
  findCoordinatorResponse,
} from '../../src/protocol/schema/10-find-coordinator.ts';
import { startTestNode } from './support.ts';

test('this node coordinates every group, in every version', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const { host, port } = node.address;
  for (let version = 0; version <= 6; version++) {
    const request = version < 4 ? { key: 'group' } : { coordinatorKeys: ['one', 'two'] };
    const answer = await client.ask(
      findCoordinatorRequest,
      findCoordinatorResponse,
      version,
      request,
    );
    const found = version < 4 ? [{ ...answer, key: 'group' }] : answer.coordinators;
    const facts = found.map((each) => [
      each.key,
      each.errorCode,
      each.nodeId,
      each.host,
      each.port,
    ]);
    const keys = version < 4 ? ['group'] : ['one', 'two'];
    assert.deepEqual(
      facts,
      keys.map((key) => [key, ErrorCode.NONE, 0, host, port]),
    );
  }
});

test('there are no coordinators of other types', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const answer = await client.ask(findCoordinatorRequest, findCoordinatorResponse, 6, {
    keyType: 2,
    coordinatorKeys: ['group:topic:0'],
  });
  const [found] = answer.coordinators;
  assert.equal(found?.errorCode, ErrorCode.INVALID_REQUEST);
  assert.equal(found?.nodeId, -1);
});
