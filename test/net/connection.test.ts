import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { readBytesMax } from '../../src/net/byte-budget.ts';
import {
  answer,
  FrameCollector,
  framed,
  request,
  rounds,
  type Taken,
  TestServer,
  until,
} from './helpers.ts';

function texts(server: TestServer): string {
  return server.taken.map(({ text }) => text.replaceAll('.', '')).join();
}

test('requests are dispatched as they arrive, at every split of the stream', async () => {
  const stream = Buffer.concat([request('a'), request('b')]);
  for (let at = 1; at < stream.length; at++) {
    const server = new TestServer();
    const { client } = server.connect();
    client.write(stream.subarray(0, at));
    await until(() => server.net.counters.bytesIn === at, 'the first part');
    assert.equal(server.taken.length, at >= 16 ? 1 : 0, `split at ${at}`);
    client.write(stream.subarray(at));
    await until(() => server.taken.length === 2, 'both requests');
    assert.equal(texts(server), 'a,b');
    await server.net.close();
  }
});

test('pipelined requests are answered in order, whatever the order of replies', async () => {
  const server = new TestServer();
  const { client } = server.connect();
  const received = new FrameCollector(client);
  for (let i = 0; i < 20; i++) client.write(request(`r${i}`));
  await until(() => server.taken.length === 20, 'all requests in flight');
  assert.equal(server.net.inFlightBytes, 20 * 16);
  for (const { reply, text } of server.taken.toReversed()) answer(reply, `re ${text}`);
  await until(() => received.frames.length === 20, 'all answers');
  assert.deepEqual(
    received.texts,
    server.taken.map(({ text }) => `re ${text}`),
  );
  await until(() => server.net.inFlightBytes === 0, 'nothing in flight');
  await server.net.close();
});

test('a reply within the dispatch does not dispatch the next frame inside it', async () => {
  const server = new TestServer({ requestsInFlightMax: 1 });
  const { client } = server.connect();
  let depth = 0;
  server.onRequest = ({ reply }) => {
    depth += 1;
    assert.equal(depth, 1);
    answer(reply, 'x');
    depth -= 1;
  };
  const received = new FrameCollector(client);
  client.write(Buffer.concat(Array.from({ length: 50 }, (_, i) => request(`r${i}`))));
  await until(() => received.frames.length === 50, 'all answers');
  assert.equal(server.fatal.length, 0);
  await server.net.close();
});

test('no more requests are taken than may be in flight, and reading goes on below', async () => {
  const server = new TestServer({ requestsInFlightMax: 3 });
  const { client } = server.connect();
  client.write(Buffer.concat(Array.from({ length: 8 }, (_, i) => request(`${i}`))));
  await until(() => server.taken.length === 3, 'three requests');
  await rounds();
  assert.equal(texts(server), '0,1,2');
  assert.equal(server.net.counters.readPauses, 1);
  answer(server.taken[1]!.reply, 'x');
  await rounds();
  assert.equal(texts(server), '0,1,2', 'the answer must wait for its turn');
  answer(server.taken[0]!.reply, 'x');
  await until(() => server.taken.length === 5, 'two more');
  await rounds();
  assert.equal(texts(server), '0,1,2,3,4');
  for (let i = 2; i < 8; i++) {
    await until(() => server.taken.length > i, `request ${i}`);
    server.taken[i]!.reply.send(null);
  }
  assert.equal(texts(server), '0,1,2,3,4,5,6,7');
  await server.net.close();
});

test('bytes in flight stop reading, and one larger request is let through alone', async () => {
  const server = new TestServer({ connectionBytesInFlightMax: 1000 });
  const { client } = server.connect();
  for (const name of ['a', 'b', 'c']) client.write(request(name, 400));
  client.write(request('huge', 5000));
  await until(() => server.taken.length === 2, 'two requests');
  await rounds();
  assert.equal(texts(server), 'a,b');
  server.taken[0]!.reply.send(null);
  await until(() => server.taken.length === 3, 'the third');
  server.taken[1]!.reply.send(null);
  await rounds();
  assert.equal(texts(server), 'a,b,c', 'the huge one only goes alone');
  server.taken[2]!.reply.send(null);
  await until(() => server.taken.length === 4, 'the huge one');
  assert.equal(server.taken[3]!.bytes, 5000);
  await server.net.close();
});

test('answers that a slow reader leaves unread stop reading from it', async () => {
  const server = new TestServer({ connectionBytesInFlightMax: 10_000 });
  server.onRequest = ({ reply }) => reply.send([framed(Buffer.alloc(3000))]);
  const pair = server.connect();
  const received = new FrameCollector(pair.client);
  pair.server.stuck = true;
  for (let i = 0; i < 20; i++) {
    pair.client.write(request(`${i}`));
    await rounds(2);
  }
  assert(server.taken.length <= 5, `${server.taken.length} taken`);
  assert(server.net.inFlightBytes < 20_000);
  pair.server.unstick();
  await until(() => received.frames.length === 20, 'all answers');
  await until(() => server.net.inFlightBytes === 0, 'nothing in flight');
  await server.net.close();
});

test('a reader that accepts nothing for too long is cut off', async () => {
  const server = new TestServer({ writeStallMsMax: 8000 });
  server.onRequest = ({ reply }) => answer(reply, 'x', (whole) => written.push(whole));
  const written: boolean[] = [];
  const pair = server.connect();
  pair.server.stuck = true;
  server.clock.advance(4000);
  pair.client.write(request('a'));
  await until(() => pair.server.stalled, 'a write that waits');
  server.clock.advance(7000);
  await rounds();
  assert.equal(server.closed.length, 0);
  server.clock.advance(2000);
  await until(() => server.closed.length === 1, 'the close');
  assert.deepEqual(written, [false]);
  assert.equal(server.net.counters.connectionsClosed['write-stalled'], 1);
  assert.equal(server.net.inFlightBytes, 0);
});

for (const [name, size] of [
  ['negative', -1],
  ['zero', 0],
  ['too small', 7],
  ['too large', 5001],
  ['absurd', 0x7fffffff],
] as const) {
  test(`a ${name} frame size closes that connection only`, async () => {
    const server = new TestServer({ frameBytesMax: 5000 });
    const other = server.connect();
    const { client } = server.connect();
    const received = new FrameCollector(client);
    const header = Buffer.alloc(4);
    header.writeInt32BE(size);
    client.write(request('good'));
    await until(() => server.taken.length === 1, 'the request before');
    client.write(header);
    await until(() => received.closed, 'the close');
    assert.equal(server.net.counters.connectionsClosed['frame-size'], 1);
    other.client.write(request('fine', 5000));
    await until(() => server.taken.length === 2, 'the request of the other');
    await server.net.close();
  });
}

test('a session may allow shorter frames', async () => {
  const server = new TestServer();
  const { client } = server.connect();
  server.onRequest = ({ connection }) => {
    connection.frameBytesMin = 0;
  };
  client.write(Buffer.concat([request('handshake'), framed(Buffer.alloc(0)), framed(two)]));
  await until(() => server.taken.length === 3, 'the tokens');
  assert.equal(server.taken[1]!.bytes, 0);
  await server.net.close();
});
const two = Buffer.from('ab');

test('a malformed frame closes that connection and no other', async () => {
  const server = new TestServer();
  server.onRequest = ({ text }) => {
    if (text.startsWith('bad')) throw new SyntaxError('bad frame');
  };
  const other = server.connect();
  const { client } = server.connect();
  const received = new FrameCollector(client);
  client.write(Buffer.concat([request('good'), request('bad'), request('more')]));
  await until(() => received.closed, 'the close');
  assert.equal(texts(server), 'good', 'what follows is not looked at');
  other.client.write(request('fine'));
  await until(() => server.taken.length === 2, 'the request of the other');
  assert.equal(server.net.counters.connectionsClosed.malformed, 1);
  assert.deepEqual(server.fatal, []);
  await server.net.close();
});

test('any other error of a session is passed on as fatal', async () => {
  const server = new TestServer();
  const bug = new Error('a bug');
  server.onRequest = () => {
    throw bug;
  };
  const { client } = server.connect();
  client.write(request('a'));
  await until(() => server.fatal.length === 1, 'the error');
  assert.equal(server.fatal[0], bug);
  await until(() => server.closed.length === 1, 'the close');
});

test('replies after the close are ignored and give their buffers back', async () => {
  const server = new TestServer();
  const { client } = server.connect();
  client.write(request('a'));
  client.write(request('b'));
  await until(() => server.taken.length === 2, 'two requests');
  const written: boolean[] = [];
  answer(server.taken[1]!.reply, 'b', (whole) => written.push(whole));
  client.destroy();
  await until(() => server.closed.length === 1, 'the close');
  assert.deepEqual(written, [false]);
  answer(server.taken[0]!.reply, 'a', (whole) => written.push(whole));
  assert.deepEqual(written, [false, false]);
  assert.equal(server.net.inFlightBytes, 0);
});

test('a stream that fails closes its connection and nothing else', async () => {
  const server = new TestServer();
  const pair = server.connect();
  const other = server.connect();
  pair.client.write(request('a'));
  await until(() => server.taken.length === 1, 'a request');
  pair.server.destroy(new Error('ECONNRESET'));
  await until(() => server.closed.length === 1, 'the close');
  assert.equal(server.net.counters.connectionsClosed.error, 1);
  answer(server.taken[0]!.reply, 'x');
  other.client.write(request('b'));
  await until(() => server.taken.length === 2, 'the request of the other');
  await server.net.close();
});

test('closing after the answers takes no more requests and answers the rest', async () => {
  const server = new TestServer();
  server.onRequest = ({ text, connection }) => {
    if (text.startsWith('b')) connection.closeAfterAnswers('denied');
  };
  const { client } = server.connect();
  const received = new FrameCollector(client);
  client.write(Buffer.concat([request('a'), request('b'), request('c')]));
  await until(() => server.taken.length === 2, 'two requests');
  answer(server.taken[1]!.reply, 're b');
  await rounds();
  assert(!received.ended);
  answer(server.taken[0]!.reply, 're a');
  await until(() => received.ended, 'the end');
  assert.deepEqual(received.texts, ['re a', 're b']);
  await until(() => server.closed.length === 1, 'the close');
  assert.equal(texts(server), 'a,b');
  assert.equal(server.net.counters.connectionsClosed.denied, 1);
});

test('a client that is silent is closed by the idle rule, a waiting one is not', async () => {
  const server = new TestServer({ idleMsMax: 80_000 });
  const silent = server.connect();
  const waiting = server.connect();
  const midFrame = server.connect();
  const talking = server.connect();
  waiting.client.write(request('parked'));
  midFrame.client.write(request('never whole').subarray(0, 7));
  await until(() => server.taken.length === 1, 'the parked request');
  for (let i = 0; i < 9; i++) {
    server.clock.advance(10_000);
    talking.client.write(request('hello'));
    await until(() => server.taken.length === 2 + i, 'a request');
    server.taken[1 + i]!.reply.send(null);
    if (i < 7) assert.equal(server.closed.length, 0);
  }
  await until(() => server.closed.length === 2, 'two closes');
  assert.equal(server.net.counters.connectionsClosed.idle, 2);
  assert(silent.server.destroyed && midFrame.server.destroyed);
  assert(!waiting.server.destroyed && !talking.server.destroyed);
  await server.net.close();
  assert.equal(server.clock.timerCount, 0);
});

test('time in which the process was stopped does not count as idle', async () => {
  const server = new TestServer({ idleMsMax: 80_000 });
  const { server: stream } = server.connect();
  server.clock.jump(1_000_000);
  await rounds();
  assert(!stream.destroyed);
  server.clock.advance(100_000);
  await until(() => stream.destroyed, 'the close');
});

const bigBytes = 2 * readBytesMax;

test('at the bound of all connections, small requests go on and large ones wait', async () => {
  const server = new TestServer({ totalBytesInFlightMax: bigBytes, frameBytesMax: bigBytes });
  for (const name of ['h1', 'h2']) {
    server.connect().client.write(request(name, bigBytes / 2));
    await until(() => texts(server).endsWith(name), 'a request that uses up the half');
  }
  server.connect().client.write(request('small'));
  await until(() => server.taken.length === 3, 'a small request');
  server.connect().client.write(request('elder', bigBytes));
  await until(() => server.taken.length === 4, 'one large request goes on');
  server.connect().client.write(request('second', bigBytes));
  server.connect().client.write(request('third', bigBytes));
  await rounds(50);
  assert.equal(texts(server), 'h1,h2,small,elder');
  server.taken[3]!.reply.send(null);
  await until(() => server.taken.length === 5, 'the next goes on when the elder is answered');
  await rounds(50);
  assert.equal(texts(server), 'h1,h2,small,elder,second');
  for (const i of [0, 1, 4]) server.taken[i]!.reply.send(null);
  await until(() => server.taken.length === 6, 'the last');
  for (const i of [2, 5]) server.taken[i]!.reply.send(null);
  await until(() => server.net.inFlightBytes === 0, 'nothing is held');
  await server.net.close();
});

test('frames that never become whole do not lock others out for ever', async () => {
  const limits = { totalBytesInFlightMax: bigBytes, frameAssemblyMsMax: 30_000 };
  const server = new TestServer(limits);
  const stalled = [server.connect(), server.connect()];
  for (const { client } of stalled) client.write(request('x', 10 * bigBytes).subarray(0, bigBytes));
  await until(() => server.net.inFlightBytes >= bigBytes, 'all is held by halves of frames');
  server.clock.advance(10_000);
  const honest = server.connect();
  honest.client.write(request('honest', bigBytes));
  await rounds(50);
  assert.equal(server.taken.length, 0);
  server.clock.advance(15_000);
  await rounds();
  assert.equal(server.closed.length, 0);
  server.connect().client.write(request('small'));
  await until(() => server.taken.length === 1, 'small requests go on meanwhile');
  server.clock.advance(10_000);
  await until(() => server.taken.length === 2, 'the large request');
  assert.equal(texts(server), 'small,honest');
  assert.equal(server.net.counters.connectionsClosed['assembly-stalled'], 2);
  await server.net.close();
});

test('many connections with large requests all get their turn', async () => {
  const server = new TestServer({ totalBytesInFlightMax: bigBytes });
  let heldBytesMax = 0;
  server.onRequest = ({ reply }) => {
    heldBytesMax = Math.max(heldBytesMax, server.net.inFlightBytes);
    setImmediate(() => answer(reply, 'x'));
  };
  const received = Array.from({ length: 20 }, (_, i) => {
    const { client } = server.connect(`10.0.0.${i}`);
    for (let k = 0; k < 5; k++) client.write(request(`${i}-${k}`, bigBytes));
    return new FrameCollector(client);
  });
  await until(() => received.every(({ frames }) => frames.length === 5), 'all answers');
  await until(() => server.net.inFlightBytes === 0, 'nothing is held');
  assert(server.net.counters.readPauses > 0);
  await server.net.close();
});

for (const seed of [1, 2, 3, 4, 5, 6]) {
  test(`under all bounds at once every request is answered, seed ${seed}`, async () => {
    const random = seededRandom(seed);
    const below = (max: number): number => Math.floor(random.next() * max);
    const server = new TestServer({
      totalBytesInFlightMax: 2 * bigBytes,
      connectionBytesInFlightMax: bigBytes,
      frameBytesMax: 2 * bigBytes,
      requestsInFlightMax: 4,
    });
    const waiting: Taken[] = [];
    server.onRequest = (taken) => {
      if (random.next() < 0.3) answer(taken.reply, taken.text);
      else waiting.push(taken);
    };
    const clients = Array.from({ length: 12 }, (_, i) => {
      const { client } = server.connect(`10.0.0.${i}`);
      const names = Array.from({ length: 12 }, (_, k) => `${i}-${k}`.padEnd(32, '.'));
      for (const name of names) {
        const bytes = random.next() < 0.5 ? 32 + below(500) : 32 + below(2 * bigBytes - 32);
        client.write(request(name, bytes));
      }
      return { names, received: new FrameCollector(client) };
    });
    await until(() => {
      for (let n = below(4); n > 0 && waiting.length > 0; n--) {
        const [taken] = waiting.splice(below(waiting.length), 1);
        answer(taken!.reply, taken!.text);
      }
      return clients.every(({ names, received }) => received.frames.length === names.length);
    }, 'all answers');
    for (const { names, received } of clients) assert.deepEqual(received.texts, names);
    await until(() => server.net.inFlightBytes === 0, 'nothing is held');
    assert(server.net.counters.readPauses > 0);
    await server.net.close();
  });
}
