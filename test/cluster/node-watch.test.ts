import assert from 'node:assert/strict';
import test from 'node:test';
import { NodeWatch } from '../../src/cluster/node-watch.ts';
import { TestClock } from '../broker/support.ts';

test('a node that has a connection and does not answer is noticed, until it does', async () => {
  const clock = new TestClock();
  clock.stop();
  const silent: number[] = [];
  const answers = new Map<number, () => void>();
  const watch = new NodeWatch({
    ...{ clock, timeoutMs: 400, connected: () => [1, 2] },
    ask: (nodeId) =>
      nodeId === 1
        ? Promise.resolve()
        : new Promise<void>((resolve) => {
            answers.set(nodeId, resolve);
          }),
    onSilent: (nodeId) => silent.push(nodeId),
  });
  watch.start();
  const pass = async () => {
    clock.advance(400);
    await Promise.resolve();
    await Promise.resolve();
  };
  await pass();
  assert.deepEqual(silent, []);
  await pass();
  await pass();
  assert.deepEqual(silent, [2, 2]);
  answers.get(2)!();
  await pass();
  await pass();
  assert.deepEqual(silent, [2, 2, 2]);
  answers.get(2)!();
  await Promise.resolve();
  await pass();
  assert.deepEqual(silent, [2, 2, 2]);
  watch.stop();
  clock.advance(4000);
  assert.deepEqual(silent, [2, 2, 2]);
});
