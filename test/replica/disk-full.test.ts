/** A disk that fills up, or fails: what goes on, what is refused, what ends the process. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { batchOf, folder, TestMachine, type TestReplica } from './support.ts';

const disk = { lowWaterBytes: 64 * 1024, reserveBytes: 16 * 1024 };
const reserve = `${folder}/reserve`;

/** A node with a topic on a disk with 256 KiB to spare. */
async function started(): Promise<{ machine: TestMachine; node: TestReplica }> {
  const machine = new TestMachine();
  machine.disk.quotaBytes = 256 * 1024;
  const node = await machine.start({ disk });
  await node.createTopic();
  return { machine, node };
}

async function produceUntilRefused(node: TestReplica): Promise<number> {
  for (let accepted = 0; accepted < 1000; accepted++) {
    await node.clock.advance(200);
    const { errorCode } = await node.produce(batchOf(3000));
    if (errorCode === ErrorCode.NONE) continue;
    assert.equal(errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
    return accepted;
  }
  throw new Error('never refused');
}

test('a reserve is held back from the first start on', async () => {
  const { machine } = await started();
  assert.equal(machine.disk.content(reserve).length, disk.reserveBytes);
});

test('a half-filled reserve of a crash is filled anew', async () => {
  const { machine } = await started();
  machine.disk.cut(reserve, 100);
  machine.kill();
  await machine.start({ disk });
  assert.equal(machine.disk.content(reserve).length, disk.reserveBytes);
});

test('below the low-water mark produce is refused with a retriable error, commits go on', async () => {
  const { machine, node } = await started();
  const accepted = await produceUntilRefused(node);
  assert.ok(accepted > 20);
  assert.equal(node.end(), accepted);
  const free = machine.disk.quotaBytes - machine.disk.usedBytes;
  assert.ok(free > disk.lowWaterBytes / 2, `${free} bytes are free`);
  assert.equal(await node.commit(5), 'applied');
  assert.equal(node.committed, 5);
  assert.deepEqual(machine.fatal, []);
});

test('on a full disk commits go on from the reserve, and produce comes back with the space', async () => {
  const { machine, node } = await started();
  const accepted = await produceUntilRefused(node);
  machine.disk.quotaBytes = machine.disk.usedBytes;
  for (let offset = 1; machine.disk.paths().includes(reserve); offset++) {
    assert.equal(await node.commit(offset), 'applied', `commit of ${offset}`);
    assert.ok(offset < 1000, 'the reserve was given up');
  }
  assert.equal((await node.produce(batchOf(10))).errorCode, ErrorCode.KAFKA_STORAGE_ERROR);

  machine.disk.quotaBytes = 512 * 1024;
  await node.clock.advance(1000);
  await node.clock.settle();
  const { errorCode, baseOffset } = await node.produce(batchOf(10));
  assert.deepEqual([errorCode, baseOffset], [ErrorCode.NONE, accepted]);
  assert.ok(machine.disk.paths().includes(reserve), 'there is a reserve again');
  assert.deepEqual(machine.fatal, []);
});

test('when the reserve is used up too, changes are refused and nothing is lost', async () => {
  const { machine, node } = await started();
  const accepted = await produceUntilRefused(node);
  machine.disk.quotaBytes = machine.disk.usedBytes;
  let committed = 0;
  while ((await node.commit(committed + 1)) === 'applied') committed++;
  assert.ok(committed > 20);
  assert.equal(node.committed, committed);
  assert.deepEqual(machine.fatal, []);

  machine.crash();
  await assert.rejects(machine.start({ disk }), { code: 'DISK_FULL' });
  machine.kill();
  machine.disk.quotaBytes = 512 * 1024;
  const again = await machine.start({ disk });
  assert.equal(again.committed, committed);
  assert.equal(again.end(), accepted);
  assert.equal((await again.produce(batchOf(10))).baseOffset, accepted);
});

test('what is refused for space takes everything planned behind it along', async () => {
  const machine = new TestMachine();
  const node = await machine.start();
  await node.createTopic();
  assert.equal((await node.produce(batchOf(10, { producerId: 7, baseSequence: 0 }))).baseOffset, 0);
  machine.disk.quotaBytes = machine.disk.usedBytes;
  const first = node.produceLater(batchOf(9000, { producerId: 7, baseSequence: 1 }));
  const second = node.produceLater(batchOf(10, { producerId: 7, baseSequence: 2 }));
  const repeated = node.produceLater(batchOf(9000, { producerId: 7, baseSequence: 1 }));
  await node.clock.settle();
  for (const [outcome] of [first, second, repeated]) {
    assert.equal(outcome?.errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(outcome?.baseOffset, -1);
  }
  machine.disk.quotaBytes = Number.POSITIVE_INFINITY;
  await node.clock.advance(1000);
  await node.clock.settle();
  // The client sends them again, and they take the places that they would have had.
  const again = await node.produce(batchOf(9000, { producerId: 7, baseSequence: 1 }));
  assert.deepEqual([again.errorCode, again.baseOffset], [ErrorCode.NONE, 1]);
  const behind = await node.produce(batchOf(10, { producerId: 7, baseSequence: 2 }));
  assert.deepEqual([behind.errorCode, behind.baseOffset], [ErrorCode.NONE, 2]);
});

for (const kind of ['sync', 'write'] as const) {
  test(`a failed ${kind} is fatal, and nothing is acknowledged afterwards`, async () => {
    const machine = new TestMachine();
    const node = await machine.start();
    await node.createTopic();
    await node.produce(batchOf(10));
    let syncs = 0;
    machine.disk.fault = (call) => {
      if (call.kind === 'sync') syncs++;
      if (call.kind !== kind) return undefined;
      machine.disk.fault = (later) => {
        if (later.kind === 'sync') syncs++;
        return undefined;
      };
      return 'EIO';
    };
    const lost = node.produceLater(batchOf(20));
    await node.clock.settle();
    assert.ok(machine.fatal.length > 0);
    assert.match(String(machine.fatal[0]), /EIO/);
    const later = node.produceLater(batchOf(30));
    await node.clock.settle();
    assert.deepEqual([lost, later], [[], []]);
    assert.equal(syncs, kind === 'sync' ? 1 : 0, 'a failed sync is never tried again');

    machine.crash();
    const again = await machine.start();
    assert.ok(again.end() === 1 || again.end() === 2);
  });
}
