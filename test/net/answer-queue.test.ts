import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { AnswerQueue, joinSmall } from '../../src/net/answer-queue.ts';
import { FrameCollector, framed, type MemoryDuplex, memoryPair, rounds, until } from './helpers.ts';

class Bench {
  readonly client: MemoryDuplex;
  readonly server: MemoryDuplex;
  readonly received: FrameCollector;
  readonly queue: AnswerQueue;
  inFlightBytes = 0;
  writes: number[] = [];

  constructor() {
    ({ client: this.client, server: this.server } = memoryPair());
    this.received = new FrameCollector(this.client);
    this.queue = new AnswerQueue(this.server, {
      onInFlightChange: (delta) => {
        this.inFlightBytes += delta;
      },
      onWriting: (bytes) => this.writes.push(bytes),
    });
  }
}

function text(body: string): Buffer {
  return framed(Buffer.from(body, 'latin1'));
}

test('answers given in reverse order leave in the order of the requests', async () => {
  const bench = new Bench();
  const replies = Array.from({ length: 10 }, () => bench.queue.push(100));
  assert.equal(bench.inFlightBytes, 1000);
  for (let i = 9; i > 0; i--) {
    replies[i]?.send([text(`answer ${i}`)]);
    bench.queue.flush();
  }
  await rounds();
  assert.deepEqual(bench.received.texts, []);
  replies[0]?.send([text('answer 0')]);
  bench.queue.flush();
  await until(() => bench.received.frames.length === 10, 'all answers');
  assert.deepEqual(
    bench.received.texts,
    Array.from({ length: 10 }, (_, i) => `answer ${i}`),
  );
  assert.equal(bench.writes.length, 1);
  await until(() => bench.inFlightBytes === 0, 'all are let go');
  assert.equal(bench.queue.count, 0);
});

test('no answer keeps the order and writes nothing', async () => {
  const bench = new Bench();
  const [a, b, c, d] = [1, 2, 3, 4].map(() => bench.queue.push(10));
  const released: string[] = [];
  c?.send([text('c')], () => released.push('c'));
  b?.send(null, () => released.push('b'));
  d?.send([], () => released.push('d'));
  bench.queue.flush();
  assert.equal(released.length, 0);
  a?.send([text('a')], () => released.push('a'));
  bench.queue.flush();
  await until(() => bench.queue.count === 0, 'all are done');
  assert.deepEqual(bench.received.texts, ['a', 'c']);
  assert.deepEqual(released, ['a', 'b', 'c', 'd']);
  bench.queue.push(10).send(null);
  bench.queue.flush();
  assert.equal(bench.queue.count, 0);
  assert.equal(bench.writes.length, 1);
});

test('while the stream is busy answers collect, and leave in one write', async () => {
  const bench = new Bench();
  bench.server.stuck = true;
  for (let i = 0; i < 5; i++) {
    bench.queue.push(10).send([text(`${i}`)]);
    bench.queue.flush();
  }
  assert.deepEqual(bench.writes, [5]);
  assert(bench.queue.writing);
  bench.server.unstick();
  await until(() => bench.received.frames.length === 5, 'all answers');
  assert.deepEqual(bench.writes, [5, 20]);
});

test('a large answer is written in steps and let go at its end', async () => {
  const bench = new Bench();
  const body = seededRandom(1).bytes(3_500_000);
  const whole = framed(body);
  const pieces: Buffer[] = [];
  for (let at = 0; at < whole.length; at += 700_001) pieces.push(whole.subarray(at, at + 700_001));
  const seen: [boolean, number][] = [];
  bench.queue.push(10).send(pieces, (ok) => seen.push([ok, bench.writes.length]));
  bench.queue.push(10).send([text('after')]);
  bench.queue.flush();
  await until(() => bench.received.frames.length === 2, 'both answers');
  assert(bench.received.frames[0]?.equals(body));
  assert.equal(bench.received.frames[1]?.toString(), 'after');
  await until(() => bench.queue.count === 0, 'all are done');
  assert(bench.writes.length > 1);
  assert.equal(
    bench.writes.reduce((sum, bytes) => sum + bytes, 0),
    whole.length + 9,
  );
  assert.deepEqual(seen, [[true, bench.writes.length]]);
});

test('writes grow only while the stream takes them at once', async () => {
  const writes: number[] = [];
  let takesAtOnce = true;
  const stream = new Writable({
    write(_chunk, _encoding, callback) {
      if (takesAtOnce) callback();
      else setImmediate(callback);
    },
  });
  const queue = new AnswerQueue(stream, {
    onInFlightChange: () => undefined,
    onWriting: (bytes) => writes.push(bytes / 1024),
  });
  const send = async (kilobytes: number) => {
    queue.push(10).send([Buffer.alloc(kilobytes * 1024)]);
    queue.flush();
    await until(() => queue.count === 0, 'the answer is written');
    return writes.splice(0);
  };
  assert.deepEqual(await send(100), [100]);
  assert.deepEqual(await send(256 + 512 + 1024 + 1024 + 1), [256, 512, 1024, 1024, 1]);
  takesAtOnce = false;
  assert.deepEqual(await send(1024 + 256 + 256), [1024, 256, 256], 'a slow reader');
  takesAtOnce = true;
  assert.deepEqual(await send(256 + 512), [256, 512]);
});

test('thousands of pieces are written within the limit of a vectored write', async () => {
  const bench = new Bench();
  const body = seededRandom(2).bytes(3_000_000);
  const whole = framed(body);
  const pieces: Buffer[] = [];
  for (let at = 0; at < whole.length; at += 1500) pieces.push(whole.subarray(at, at + 1500));
  bench.queue.push(10).send(pieces);
  bench.queue.flush();
  await until(() => bench.received.frames.length === 1, 'the answer');
  assert(bench.received.frames[0]?.equals(body));
});

test('a turn comes when all earlier answers are with the kernel', async () => {
  const bench = new Bench();
  const turns: string[] = [];
  const a = bench.queue.push(10);
  const b = bench.queue.push(10);
  const c = bench.queue.push(10);
  a.onTurn(() => turns.push('a'));
  assert.deepEqual(turns, ['a'], 'the first has its turn at once');
  b.onTurn(() => turns.push('b'));
  c.onTurn(() => turns.push('c'));
  bench.server.stuck = true;
  a.send([text('a')]);
  bench.queue.flush();
  await rounds();
  assert.deepEqual(turns, ['a'], 'the answer before is not yet written');
  bench.server.unstick();
  await until(() => turns.length === 2, 'the second turn');
  b.send(null);
  assert.deepEqual(turns, ['a', 'b']);
  bench.queue.flush();
  assert.deepEqual(turns, ['a', 'b', 'c']);
  c.send([text('c')]);
  bench.queue.flush();
  await until(() => bench.queue.count === 0, 'all are done');
  assert.deepEqual(turns, ['a', 'b', 'c']);
});

test('a request is answered once', () => {
  const bench = new Bench();
  const reply = bench.queue.push(10);
  reply.send(null);
  assert.throws(() => reply.send(null), { name: 'AssertionFailed' });
});

test('when the connection dies every answer is let go, as not whole', async () => {
  const bench = new Bench();
  const seen: string[] = [];
  const note = (name: string) => (whole: boolean) => seen.push(`${name} ${whole}`);
  const replies = Array.from({ length: 4 }, () => bench.queue.push(10));
  bench.server.stuck = true;
  replies[0]?.send([text('written')], note('0'));
  bench.queue.flush();
  replies[1]?.send([text('ready')], note('1'));
  replies[3]?.send([text('ready, not its turn')], note('3'));
  replies[2]?.onTurn(() => seen.push('a turn'));
  bench.queue.kill();
  assert.deepEqual(seen, ['0 false', '1 false', '3 false']);
  assert.equal(bench.inFlightBytes, 0);
  replies[2]?.send([text('too late')], note('2'));
  assert.deepEqual(seen.slice(3), ['2 false']);
  replies[2]?.onTurn(() => seen.push('a turn'));
  bench.queue.flush();
  bench.server.unstick();
  await rounds();
  assert.equal(seen.length, 4);
});

test('small pieces are joined and large ones are left alone', () => {
  const small = (byte: number, bytes = 3): Buffer => Buffer.alloc(bytes, byte);
  const large = Buffer.alloc(5000, 9);
  const joined = joinSmall([small(1), small(2), large, small(3), large, large, small(4), small(5)]);
  assert.deepEqual(
    joined.map((piece) => piece.length),
    [6, 5000, 3, 5000, 5000, 6],
  );
  assert.equal(joined[1], large);
  assert.deepEqual([...(joined[0] ?? [])], [1, 1, 1, 2, 2, 2]);
  assert.deepEqual(joinSmall([]), []);
});
