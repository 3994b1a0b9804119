import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withSlowSyncs } from '../../src/log/slow-files.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import type { PeerPort } from '../../src/replica/peer-port.ts';
import { batchOf, folder, TestMachine } from './support.ts';

test('an answer comes only after the sync', async () => {
  const machine = new TestMachine();
  let synced = 0;
  const node = await machine.start({
    wrapFiles: (files) => ({
      ...files,
      async open(path, mode) {
        const file = await files.open(path, mode);
        return {
          ...file,
          async sync() {
            await file.sync();
            synced++;
          },
        };
      },
    }),
  });
  await node.createTopic();
  const before = synced;
  const answers = node.produceLater(batchOf(10));
  while (synced === before) {
    assert.deepEqual(answers, []);
    assert.equal(node.end(), 0, 'nothing is applied before it is durable');
    assert.ok(await node.clock.step());
  }
  await node.clock.settle();
  assert.equal(answers.length, 1);
});

test('what arrives during a write goes out together in the next one', async () => {
  const machine = new TestMachine();
  // So large that no next file is prepared meanwhile.
  const node = await machine.start({ journal: { fileBytesMax: 1024 * 1024 } });
  await node.createTopic();
  let writes = 0;
  machine.disk.fault = (call) => {
    if (call.kind === 'write') writes++;
    return undefined;
  };
  const first = node.produceLater(batchOf(10));
  await node.clock.step();
  const later = Array.from({ length: 50 }, () => node.produceLater(batchOf(10)));
  await node.clock.settle();
  assert.deepEqual(
    [first, ...later].map(([outcome]) => outcome?.baseOffset),
    Array.from({ length: 51 }, (_, i) => i),
  );
  assert.equal(writes, 2);
});

test('large groups are written while a sync is under way, and one sync covers several', async () => {
  const machine = new TestMachine();
  const node = await machine.start({ journal: { aheadBytesMin: 1, fileBytesMax: 1_000_000 } });
  await node.createTopic();
  const calls: string[] = [];
  machine.disk.fault = ({ kind }) => {
    calls.push(kind);
    return undefined;
  };
  const outcomes: ReturnType<typeof node.produceLater>[] = [];
  for (let i = 0; i < 40; i++) {
    outcomes.push(node.produceLater(batchOf(10)));
    await node.clock.step();
  }
  await node.clock.settle();
  assert.deepEqual(
    outcomes.map(([outcome]) => outcome?.baseOffset),
    Array.from({ length: 40 }, (_, i) => i),
  );
  const writes = calls.filter((kind) => kind === 'write').length;
  const syncs = calls.filter((kind) => kind === 'sync').length;
  assert.ok(syncs < writes, `${writes} writes and ${syncs} syncs`);
});

test('on a slow disk a second sync begins when the first is half way', async () => {
  const machine = new TestMachine();
  let isSlow = false;
  const node = await machine.start({
    wrapFiles: (files) => ({
      ...files,
      async open(path, mode) {
        const quick = await files.open(path, mode);
        const slow = await withSlowSyncs(files, machine.clock, 20).open(path, mode);
        return { ...quick, sync: () => (isSlow ? slow.sync() : quick.sync()) };
      },
    }),
    journal: { besideSyncMsMin: 2, fileBytesMax: 1_000_000 },
  });
  await node.createTopic();
  isSlow = true;
  // How long syncs take is learned from some.
  for (let i = 0; i < 40; i++) {
    node.produceLater(batchOf(10));
    await node.clock.run(node.replica.settled());
  }
  const first = node.produceLater(batchOf(10));
  await node.clock.settle();
  await node.clock.advance(4);
  const second = node.produceLater(batchOf(10));
  const pass = async (ms: number) => {
    await node.clock.settle();
    for (let i = 0; i < ms; i++) {
      await node.clock.advance(1);
      await node.clock.settle();
    }
  };
  await pass(15);
  assert.deepEqual([first.length, second.length], [0, 0]);
  await pass(1);
  assert.deepEqual([first.length, second.length], [1, 0]);
  // It came after 4 ms and was written after 10: the end of the first sync is not waited for.
  await pass(10);
  assert.equal(second.length, 1);
});

test('a repeated batch is answered like the first one, and only once that is durable', async () => {
  const machine = new TestMachine();
  const node = await machine.start();
  await node.createTopic();
  const first = node.produceLater(batchOf(10, { producerId: 9, baseSequence: 0 }));
  const repeated = node.produceLater(batchOf(10, { producerId: 9, baseSequence: 0 }));
  assert.equal(repeated.length, 0);
  await node.clock.settle();
  assert.deepEqual([first[0]?.baseOffset, repeated[0]?.baseOffset], [0, 0]);
  assert.equal(node.end(), 1);
  machine.crash();
  const again = await machine.start();
  const afterwards = await again.produce(batchOf(10, { producerId: 9, baseSequence: 0 }));
  assert.deepEqual([afterwards.errorCode, afterwards.baseOffset], [ErrorCode.NONE, 0]);
  const gap = await again.produce(batchOf(10, { producerId: 9, baseSequence: 2 }));
  assert.equal(gap.errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
});

test('each start has a term of its own, and leader epochs never go back', async () => {
  const machine = new TestMachine();
  const epochs: number[] = [];
  for (let i = 0; i < 4; i++) {
    const node = await machine.start();
    epochs.push(node.replica.leaderEpoch);
    if (i % 2 === 0) machine.crash();
    else machine.kill();
  }
  assert.deepEqual(epochs, [0, 1, 2, 3]);
});

test('a stop waits for what was proposed while an idle mark was written', async () => {
  const machine = new TestMachine();
  const node = await machine.start();
  await node.createTopic();
  // The timer of the idle mark fires; its write is under way.
  await node.clock.advance(1000);
  const answers = node.produceLater(batchOf(10));
  await node.clock.run(node.replica.stop());
  assert.equal(answers.length, 1);
  const again = await machine.start();
  assert.equal(again.end(), 1);
});

test('after a stop proposals are refused, and a mark covers everything', async () => {
  const machine = new TestMachine();
  const node = await machine.start();
  await node.createTopic();
  await node.produce(batchOf(10));
  await node.clock.run(node.replica.stop());
  assert.equal(await node.commit(1), 'not-leader');
  assert.equal((await node.produce(batchOf(10))).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  const journal = machine.disk.paths().find((path) => path.endsWith('.journal'))!;
  const content = machine.disk.content(journal);
  const end = content.findLastIndex((byte) => byte !== 0);
  machine.disk.overwrite(journal, end - 150, Buffer.from('damage'));
  await assert.rejects(machine.start(), { code: 'JOURNAL_DAMAGED' });
});

test('an idle node syncs once more and then rests', async () => {
  const machine = new TestMachine();
  const node = await machine.start();
  let syncs = 0;
  machine.disk.fault = (call) => {
    if (call.kind === 'sync') syncs++;
    return undefined;
  };
  for (let second = 0; second < 20; second++) {
    await node.clock.advance(1000);
    await node.clock.settle();
  }
  assert.equal(syncs, 1);
});

test('a full journal rolls, seals and snapshots without help, and starts from there', async () => {
  const machine = new TestMachine();
  const node = await machine.start({ journal: { snapshotBytes: 30_000 } });
  await node.createTopic();
  for (let i = 0; i < 60; i++) await node.produce(batchOf(1000), i % 3);
  const paths = machine.disk.paths();
  assert.ok(paths.filter((path) => path.endsWith('.journal')).length > 6);
  assert.ok(paths.filter((path) => path.endsWith('.index')).length > 5);
  assert.ok(paths.some((path) => path.startsWith(`${folder}/snapshots/`)));
  machine.crash();
  const again = await machine.start();
  assert.deepEqual([again.end(0), again.end(1), again.end(2)], [20, 20, 20]);
});

test('damage in the newest snapshot: the one before it and the journal give the same', async () => {
  const machine = new TestMachine();
  const node = await machine.start({ journal: { snapshotBytes: 10_000 } });
  await node.createTopic();
  for (let i = 0; i < 60; i++) await node.produce(batchOf(1000));
  const image = node.replica.state.image();
  const snapshots = machine.disk.paths().filter((path) => path.endsWith('.snapshot'));
  assert.equal(snapshots.length, 2);
  machine.crash();
  machine.disk.overwrite(snapshots[1]!, 100, Buffer.from('damage'));
  const again = await machine.start();
  assert.equal(again.end(), 60);
  assert.equal(again.replica.state.appliedIndex, node.replica.state.appliedIndex + 1);
  assert.ok(image.length > 0);
});

test('a start that holds back what is not committed knows where in the journal it begins', async () => {
  const machine = new TestMachine();
  const unreachable: PeerPort = { send: () => undefined, ask: async () => undefined };
  const node = await machine.start({ peers: unreachable });
  await node.createTopic();
  const { consensus } = node.replica;
  consensus.proposeMembers({ voters: ['v1'], learners: ['v2'], removed: [] });
  assert.equal(await node.commit(1), 'applied');
  consensus.proposeMembers({ voters: ['v1', 'v2'], learners: [], removed: [] });
  await node.clock.settle();
  const position = consensus.appliedPosition;
  assert.ok(position > 0);
  machine.kill();

  const again = await machine.start({ peers: unreachable });
  assert.equal(again.replica.consensus.appliedPosition, position);
});
