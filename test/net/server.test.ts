import assert from 'node:assert/strict';
import { createServer, Socket } from 'node:net';
import { after, test } from 'node:test';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { BrokerError } from '../../src/core/errors.ts';
import { readThroughSharedBuffer } from '../../src/net/shared-read.ts';
import {
  answer,
  connectTo,
  FrameCollector,
  framed,
  request,
  rounds,
  TestServer,
  until,
} from './helpers.ts';

const open: TestServer[] = [];
after(() => Promise.all(open.map((server) => server.net.close())));

async function listening(limits = {}): Promise<TestServer> {
  const server = new TestServer(limits);
  open.push(server);
  await server.net.listen({ host: '127.0.0.1', port: 0 });
  return server;
}

async function connected(server: TestServer): Promise<Socket> {
  const address = server.net.address;
  assert(address !== null);
  return await connectTo(address);
}

test('requests are answered over a real socket', async () => {
  const server = await listening();
  server.onRequest = ({ text, reply }) => answer(reply, `re ${text}`);
  const socket = await connected(server);
  const received = new FrameCollector(socket);
  socket.write(framed(Buffer.from('request 1')));
  socket.write(framed(Buffer.from('request 2')));
  await until(() => received.frames.length === 2, 'two answers');
  assert.deepEqual(received.texts, ['re request 1', 're request 2']);
  const connection = server.connections[0];
  assert(connection !== undefined);
  assert.equal(connection.remoteAddress, '127.0.0.1');
  assert.equal(connection.remotePort, socket.localPort);
  assert.equal(connection.localAddress, '127.0.0.1');
  assert.equal(connection.localPort, server.net.address?.port);
  socket.destroy();
  await until(() => server.closed.length === 1, 'the close is noticed');
  assert.equal(server.net.counters.connectionsClosed.client, 1);
  assert.equal(server.net.counters.bytesIn, 26);
  assert.equal(server.net.counters.bytesOut, 32);
  assert.equal(server.net.inFlightBytes, 0);
});

test('large requests of several connections at once arrive unmixed', async () => {
  const server = await listening({ totalBytesInFlightMax: 4_000_000 });
  const bodies = Array.from({ length: 8 }, (_, i) => Buffer.alloc(1_500_000 + i, i + 1));
  const wrong: number[] = [];
  server.onFrame = (frame, reply) => {
    if (!bodies[frame[0]! - 1]?.equals(frame)) wrong.push(frame[0]!);
    setImmediate(() => answer(reply, 'x'));
  };
  const collectors: FrameCollector[] = [];
  for (const body of bodies) {
    const socket = await connected(server);
    collectors.push(new FrameCollector(socket));
    for (let i = 0; i < 3; i++) socket.write(framed(body));
  }
  await until(() => collectors.every(({ frames }) => frames.length === 3), 'all answers');
  assert.deepEqual(wrong, []);
  assert(server.net.counters.readPauses > 0, 'the bound was reached');
});

test('a slow reader holds no more than the bound, and gets all in the end', async () => {
  const server = await listening({ connectionBytesInFlightMax: 4_000_000 });
  const piece = Buffer.alloc(1_000_000, 1);
  server.onRequest = ({ reply }) => reply.send([framed(piece)]);
  const socket = await connected(server);
  socket.pause();
  for (let i = 0; i < 40; i++) {
    socket.write(request(`${i}`));
    await rounds(2);
  }
  await until(() => server.net.counters.readPauses > 0, 'the pause');
  await rounds(50);
  const taken = server.taken.length;
  assert(taken < 40, `${taken} taken`);
  assert(server.net.inFlightBytes < 6_000_000, `${server.net.inFlightBytes} in flight`);
  const received = new FrameCollector(socket);
  socket.resume();
  await until(() => received.frames.length === 40, 'all answers');
  assert(received.frames.every((frame) => frame.equals(piece)));
  socket.destroy();
});

test('a client that resets the connection costs only that', async () => {
  const server = await listening();
  const written: boolean[] = [];
  for (let i = 0; i < 20; i++) {
    const socket = await connected(server);
    for (let k = 0; k < 5; k++) socket.write(request(`${k}`));
    await until(() => server.taken.length === 5, 'the requests');
    const taken = server.taken.splice(0);
    const early = taken.splice(0, i % 5);
    const send = ({ reply }: (typeof taken)[number]): void =>
      reply.send([framed(Buffer.alloc(3_000_000))], (whole) => written.push(whole));
    early.forEach(send);
    socket.resetAndDestroy();
    taken.forEach(send);
  }
  await until(() => server.closed.length === 20, 'all closed');
  await until(() => written.length === 100, 'all buffers given back');
  assert.equal(server.net.inFlightBytes, 0);
  assert.equal(server.net.counters.connectionsOpen, 0);
  const socket = await connected(server);
  socket.write(request('fine'));
  await until(() => server.taken.length === 1, 'the next client');
  socket.destroy();
});

test('connections above the limit are closed at once', async () => {
  const server = await listening({ connectionsMax: 2 });
  const sockets = [await connected(server), await connected(server)];
  const third = new FrameCollector(await connected(server));
  await until(() => third.closed, 'the third is closed');
  assert.equal(server.net.counters.connectionsRefused, 1);
  assert.equal(server.net.counters.connectionsOpen, 2);
  sockets[0]?.destroy();
  await until(() => server.closed.length === 1, 'a place is free');
  const next = await connected(server);
  next.write(request('fine'));
  await until(() => server.taken.length === 1, 'the next is served');
});

test('connections above the limit of an address are closed at once', async () => {
  const server = await listening({ connectionsPerIpMax: 2 });
  const first = await connected(server);
  await connected(server);
  const third = new FrameCollector(await connected(server));
  await until(() => third.closed, 'the third is closed');
  server.connect('10.0.0.1');
  server.connect('::ffff:10.0.0.1');
  const refused = server.connect('10.0.0.1');
  assert(refused.server.destroyed);
  assert.equal(server.net.counters.connectionsRefused, 2);
  first.destroy();
  await until(() => server.closed.length === 1, 'a place is free');
  const next = await connected(server);
  next.write(request('fine'));
  await until(() => server.taken.length === 1, 'the next is served');
});

test('shutdown answers what is in flight, then ends', async () => {
  const server = await listening();
  const socket = await connected(server);
  const idle = new FrameCollector(await connected(server));
  const received = new FrameCollector(socket);
  socket.write(Buffer.concat([request('a'), request('b')]));
  await until(() => server.taken.length === 2, 'two requests');
  const at = server.net.address!;
  let done = false;
  const shutdown = server.net.shutdown(10_000).then(() => {
    done = true;
  });
  socket.write(request('too late'));
  await until(() => idle.closed, 'the idle one is closed at once');
  await assert.rejects(connectOnce(at.port), { code: 'ECONNREFUSED' });
  answer(server.taken[1]!.reply, 're b');
  answer(server.taken[0]!.reply, 're a');
  await until(() => received.closed, 'the end');
  assert.deepEqual(received.texts, ['re a', 're b']);
  await shutdown;
  assert(done);
  assert.equal(server.taken.length, 2);
  assert.equal(server.net.counters.connectionsClosed.shutdown, 2);
  assert.equal(server.clock.timerCount, 0);
  assert.equal(server.net.address, null);
});

test('shutdown gives up at the deadline', async () => {
  const server = await listening();
  const socket = await connected(server);
  const received = new FrameCollector(socket);
  socket.write(request('a'));
  await until(() => server.taken.length === 1, 'a request');
  const shutdown = server.net.shutdown(10_000);
  await rounds();
  assert(!received.closed);
  server.clock.advance(10_000);
  await shutdown;
  await until(() => received.closed, 'the close');
  assert.deepEqual(received.texts, []);
});

test('a client that does not close after the last answer is cut off', async () => {
  const server = new TestServer();
  const pair = server.connect();
  pair.client.on('end', () => undefined);
  server.connections[0]!.closeAfterAnswers('denied');
  await rounds();
  assert(!pair.server.destroyed, 'the client never read the end');
  server.clock.advance(10_000);
  await until(() => server.closed.length === 1, 'the close');
  assert.equal(server.net.counters.connectionsClosed.denied, 1);
});

test('close cuts everything off at once', async () => {
  const server = await listening();
  const socket = await connected(server);
  const received = new FrameCollector(socket);
  socket.write(request('a'));
  await until(() => server.taken.length === 1, 'a request');
  await server.net.close();
  await until(() => received.closed, 'the close');
  assert.equal(server.net.inFlightBytes, 0);
  await server.net.close();
});

test('an address that is taken is an operational error with the address', async () => {
  const server = await listening();
  const second = new TestServer();
  const at = server.net.address!;
  await assert.rejects(
    second.net.listen(at),
    (error) => error instanceof BrokerError && error.fields['port'] === at.port,
  );
});

test('a socket that cannot read through the shared buffer is served all the same', async () => {
  assert.equal(readThroughSharedBuffer(new Socket()), null);
  const server = new TestServer();
  open.push(server);
  server.onRequest = ({ text, reply }) => answer(reply, `re ${text}`);
  const plain = createServer({ pauseOnConnect: true }, (socket) => server.net.adopt(socket));
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  const socket = await connectTo({ host: '127.0.0.1', port: portOf(plain.address()) });
  const received = new FrameCollector(socket);
  for (let i = 0; i < 5; i++) socket.write(framed(Buffer.from(`request ${i}`)));
  await until(() => received.frames.length === 5, 'the answers');
  assert.deepEqual(received.texts[4], 're request 4');
  socket.destroy();
  plain.close();
});

test('a TLS socket is served like any other', async () => {
  const server = new TestServer({ connectionBytesInFlightMax: 100_000 });
  open.push(server);
  server.onFrame = (frame, reply) => reply.send([framed(frame), new Uint8Array()]);
  // Anonymous key exchange needs no certificate, which a test cannot make.
  const settings = { ciphers: 'aNULL:@SECLEVEL=0', maxVersion: 'TLSv1.2' } as const;
  const tls = createTlsServer(settings, (socket) => server.net.adopt(socket));
  await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
  const port = portOf(tls.address());
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...settings });
  const received = new FrameCollector(socket);
  const bodies = Array.from({ length: 30 }, (_, i) => Buffer.alloc(20_000 * (i + 1), i));
  for (const body of bodies) socket.write(framed(body));
  await until(() => received.frames.length === 30, 'the answers');
  assert(received.frames.every((frame, i) => bodies[i]?.equals(frame)));
  socket.destroy();
  tls.close();
  await until(() => server.closed.length === 1, 'the close is noticed');
});

function portOf(address: ReturnType<ReturnType<typeof createServer>['address']>): number {
  assert(address !== null && typeof address === 'object');
  return address.port;
}

async function connectOnce(port: number): Promise<void> {
  const socket = new Socket();
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.connect({ port, host: '127.0.0.1' }, resolve);
  });
  socket.destroy();
}
