import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  deleteTopicsRequest,
  deleteTopicsResponse,
} from '../../src/protocol/schema/20-delete-topics.ts';
import { ZERO_UUID } from '../../src/protocol/uuid.ts';
import { batchOf, produceTo } from './records.ts';
import { startTestNode, type TestClient } from './support.ts';

interface Asked {
  readonly name?: string;
  readonly id?: string;
}

async function remove(client: TestClient, asked: readonly Asked[]) {
  const topics = asked.map(({ name, id }) => ({ name: name ?? null, topicId: id ?? ZERO_UUID }));
  const request = { topics, timeoutMs: 1000 };
  const answer = await client.ask(deleteTopicsRequest, deleteTopicsResponse, 6, request);
  return answer.responses.map(({ name, topicId, errorCode }) => [name, topicId, errorCode]);
}

const someId = '0123456789abcdef0123456789abcdef';

test('topics are gone when the answer comes, by name in every version', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  for (let version = 0; version <= 5; version++) {
    await node.createTopic('orders');
    const request = { topicNames: ['orders', 'nothing'], timeoutMs: 1000 };
    const answer = await client.ask(deleteTopicsRequest, deleteTopicsResponse, version, request);
    const codes = new Map(answer.responses.map(({ name, errorCode }) => [name, errorCode]));
    assert.equal(codes.get('orders'), ErrorCode.NONE);
    assert.equal(codes.get('nothing'), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    assert.equal(node.broker.topics.byName('orders'), undefined);
  }
});

test('by id', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const { id } = await node.createTopic('orders');
  assert.deepEqual(await remove(client, [{ id }]), [['orders', id, ErrorCode.NONE]]);
  assert.deepEqual(await remove(client, [{ id }]), [[null, id, ErrorCode.UNKNOWN_TOPIC_ID]]);
});

test('what names nothing, too much, or the same twice', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const { id } = await node.createTopic('orders');
  const invalid = ErrorCode.INVALID_REQUEST;
  assert.deepEqual(await remove(client, [{}]), [[null, ZERO_UUID, invalid]]);
  assert.deepEqual(await remove(client, [{ name: 'x', id: someId }]), [['x', someId, invalid]]);
  const name = 'orders';
  assert.deepEqual(await remove(client, [{ name }, { name }]), [[name, ZERO_UUID, invalid]]);
  assert.deepEqual(await remove(client, [{ id }, { id }]), [[null, id, invalid]]);
  assert.deepEqual(await remove(client, [{ name }, { id }]), [[name, id, invalid]]);
  assert.ok(node.broker.topics.byName(name) !== undefined);
});

test('a topic of the same name is a new one', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const first = await node.createTopic('orders');
  await produceTo(client, { topic: 'orders', records: batchOf(['a', 'b']) });
  await remove(client, [{ name: 'orders' }]);
  const second = await node.createTopic('orders');
  assert.notEqual(second.id, first.id);
  const { baseOffset } = await produceTo(client, { topic: 'orders', records: batchOf(['c']) });
  assert.equal(baseOffset, 0);
  await node.restart();
  assert.equal(node.broker.topics.byName('orders')?.id, second.id);
});

test('two deletions at once: one of them finds nothing', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const clients = await Promise.all([node.connect(), node.connect()]);
  const results = await Promise.all(clients.map((client) => remove(client, [{ name: 'orders' }])));
  const codes = results.map(([result]) => result![2]).sort();
  assert.deepEqual(codes, [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]);
});
