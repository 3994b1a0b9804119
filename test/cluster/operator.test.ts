import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeHello, encodeHello } from '../../src/cluster/hello.ts';
import { decodeWish, encodeWish, type OperatorWish } from '../../src/cluster/operator.ts';
import { BytesError } from '../../src/core/bytes.ts';

test('what an operator asks for comes over as it was meant', () => {
  const wishes: OperatorWish[] = [
    { kind: 'remove', nodeId: 7 },
    { kind: 'add', node: { nodeId: 4, peerHost: 'four.example.com', peerPort: 9192 } },
  ];
  for (const wish of wishes) assert.deepEqual(decodeWish(encodeWish(wish)), wish);
});

test('what is no wish is refused', () => {
  const [remove, add] = [
    encodeWish({ kind: 'remove', nodeId: 7 }),
    encodeWish({ kind: 'add', node: { nodeId: 4, peerHost: 'h', peerPort: 1 } }),
  ];
  assert.throws(() => decodeWish(remove.subarray(0, 4)), RangeError);
  assert.throws(() => decodeWish(add.subarray(0, 4)), BytesError);
  assert.throws(() => decodeWish(Buffer.of(99, 1, 2, 3, 4)), RangeError);
  assert.throws(() => decodeWish(Buffer.alloc(0)), RangeError);
});

test('a node that says nothing of a feature level is of the first one', () => {
  const address = { host: 'h', port: 1, peerHost: 'p', peerPort: 2 };
  const node = { nodeId: 1, directoryId: 'd', ...address };
  const hello = { clusterId: 'c', node, level: 3, tenantPortBase: 7 };
  const bytes = encodeHello(hello);
  assert.deepEqual(decodeHello(bytes), hello);
  assert.deepEqual(decodeHello(bytes.subarray(0, -1)), { ...hello, tenantPortBase: 0 });
  assert.deepEqual(decodeHello(bytes.subarray(0, -2)), { ...hello, level: 1, tenantPortBase: 0 });
  assert.deepEqual(decodeHello(Buffer.concat([bytes, Buffer.from('more')])), hello);
});
