import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer, connectTo, FrameCollector, framed, TestServer, until } from './helpers.ts';

const open: TestServer[] = [];
after(() => Promise.all(open.map((server) => server.net.close())));

async function listening(limits = {}): Promise<TestServer> {
  const server = new TestServer(limits);
  open.push(server);
  await server.net.listen({ host: '127.0.0.1', port: 0 });
  return server;
}

test('a request is answered over a real socket', async () => {
  const server = await listening();
  server.onRequest = ({ text, reply }) => answer(reply, `re ${text}`);
  const address = server.net.address;
  assert(address !== null);
  const socket = await connectTo(address);
  const received = new FrameCollector(socket);
  socket.write(framed(Buffer.from('request 1')));
  socket.write(framed(Buffer.from('request 2')));
  await until(() => received.frames.length === 2, 'two answers');
  assert.deepEqual(received.texts, ['re request 1', 're request 2']);
  const connection = server.connections[0];
  assert(connection !== undefined);
  assert.equal(connection.localAddress, '127.0.0.1');
  assert.equal(connection.localPort, address.port);
  socket.destroy();
  await until(() => server.closed.length === 1, 'the close is noticed');
  assert.equal(server.net.counters.connectionsClosed.client, 1);
  assert.equal(server.net.inFlightBytes, 0);
});
