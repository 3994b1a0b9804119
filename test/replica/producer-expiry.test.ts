import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { batchOf, produceTo } from '../broker/records.ts';
import { startTestNode, type TestClient, type TestNode, until } from '../broker/support.ts';

const minuteMs = 60_000;

function write(client: TestClient, producerId: number, baseSequence = 0) {
  const records = batchOf(['v'], { producerId, producerEpoch: 0, baseSequence });
  return produceTo(client, { topic: 'orders', records });
}

function remembered(node: TestNode): number[] {
  return [...node.broker.replica.state.producers.all()].map(([, producerId]) => producerId);
}

test('a producer that was idle for too long is forgotten, others are not', async (t) => {
  const node = await startTestNode(t, {
    settings: {
      'producer.id.expiration.ms': 30 * minuteMs,
      'connections.max.idle.ms': 24 * 60 * minuteMs,
    },
  });
  await node.createTopic('orders');
  const client = await node.connect();
  await write(client, 1);
  await write(client, 2);
  node.clock.advance(25 * minuteMs);
  await write(client, 2, 1);
  for (let minutes = 25; minutes < 45; minutes += 5) {
    node.clock.advance(5 * minuteMs);
    await node.broker.producerExpiry.settled();
  }
  assert.deepEqual(remembered(node), [2]);
  // It may write on with any sequence.
  assert.equal((await write(client, 1, 77)).errorCode, ErrorCode.NONE);
  assert.equal((await write(client, 2, 77)).errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
});

test('a clock that jumps forgets nobody', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  await write(client, 1);
  node.clock.jumpWall(365 * 24 * 60 * minuteMs);
  node.clock.advance(20 * minuteMs);
  await node.broker.producerExpiry.settled();
  assert.deepEqual(remembered(node), [1]);
});

test('at the bound the longest idle ones go, at once and over a restart', async (t) => {
  const node = await startTestNode(t, { settings: { 'producer.state.max': 100 } });
  await node.createTopic('orders');
  const client = await node.connect();
  for (let producerId = 0; producerId <= 100; producerId++) {
    node.clock.advance(1000);
    await write(client, producerId);
  }
  await until(() => remembered(node).length <= 100, 'some are forgotten');
  await node.broker.producerExpiry.settled();
  const left = remembered(node);
  assert.ok(left.length >= 80 && left.length <= 91, `${left.length} are left`);
  const first = 101 - left.length;
  assert.deepEqual(
    left.sort((a, b) => a - b),
    Array.from(left, (_, i) => first + i),
  );
  await node.restart();
  assert.equal(remembered(node).length, left.length);
});
