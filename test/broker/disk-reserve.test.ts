import assert from 'node:assert/strict';
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import test from 'node:test';
import { startTestNode } from './support.ts';

test('the reserve is in the folder that counts when a start ends an install', async (t) => {
  const node = await startTestNode(t, { settings: { 'disk.reserve.bytes': 64 * 1024 } });
  await node.createTopic('orders');
  const folder = `${node.broker.staticSettings.data}/default`;
  await node.stop();
  // As a stop leaves it that was interrupted: a snapshot beside the folder that is to go.
  renameSync(folder, `${folder}.installed`);
  mkdirSync(folder);
  renameSync(`${folder}.installed/reserve`, `${folder}/reserve`);
  await node.start();
  assert.ok(node.broker.topics.byName('orders') !== undefined);
  assert.ok(existsSync(`${folder}/reserve`));
  assert.equal(node.broker.replica.disk.isCritical, false);
});
