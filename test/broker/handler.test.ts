import assert from 'node:assert/strict';
import test from 'node:test';
import { startTestNode } from './support.ts';

test('bytes after a request are ignored, as librdkafka needs it', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic');
  const client = await node.connect();
  // What librdkafka 2.16 sends for all topics: the array's null takes four bytes and not one.
  const request = '000000190003000d00000003000772646b61666b610000000000010000';
  const answer = await client.askBytes(3, Buffer.from(request, 'hex'));
  assert.ok(answer.includes('topic'));
});
