import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { BrokerError } from '../../src/core/errors.ts';
import { type HttpAnswer, HttpServer } from '../../src/net/http-server.ts';

const contentType = 'text/plain';

async function startServer(
  t: TestContext,
  answer: (path: string) => HttpAnswer | Promise<HttpAnswer>,
) {
  const errors: unknown[] = [];
  const server = new HttpServer({ answer, onError: (error) => errors.push(error) });
  const { host, port } = await server.listen({ host: '127.0.0.1', port: 0 });
  t.after(() => server.close());
  return { origin: `http://${host}:${port}`, port, errors };
}

test('answers have status, type and body; the query is no part of the path', async (t) => {
  const { origin } = await startServer(t, (path) => ({ status: 418, contentType, body: path }));
  const response = await fetch(`${origin}/a%20b?c=d`);
  assert.equal(response.status, 418);
  assert.equal(response.headers.get('content-type'), contentType);
  assert.equal(await response.text(), '/a%20b');
  const head = await fetch(`${origin}/a`, { method: 'HEAD' });
  assert.deepEqual([head.status, await head.text()], [418, '']);
});

test('whatever would change something is refused', async (t) => {
  const { origin } = await startServer(t, () => assert.fail('nobody is asked'));
  for (const method of ['POST', 'PUT', 'DELETE']) {
    const response = await fetch(`${origin}/groups`, { method });
    assert.equal(response.status, 405);
    assert.equal(response.headers.get('allow'), 'GET, HEAD');
  }
});

test('on the own machine, requests under names of others are refused', async (t) => {
  const { port } = await startServer(t, () => ({ status: 200, contentType, body: 'figures' }));
  const cases: readonly (readonly [string, number])[] = [
    ['localhost:1', 200],
    ['127.0.0.1', 200],
    ['[::1]:9644', 200],
    ['page.example:9644', 421],
    ['127.0.0.1.page.example', 421],
  ];
  for (const [host, expected] of cases) {
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    assert.equal(Number(String(answer).split(' ')[1]), expected, host);
  }
});

test('a long body is made while it is sent, and no further when the client is gone', async (t) => {
  let made = 0;
  function* pieces(): Iterable<string> {
    for (; made < 100_000; made++) yield 'x'.repeat(1000);
  }
  const { origin, port } = await startServer(t, () => ({
    status: 200,
    contentType,
    body: pieces(),
  }));
  const whole = await (await fetch(origin)).text();
  assert.equal(whole.length, 100_000_000);
  made = 0;
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n');
  await once(socket, 'data');
  socket.pause();
  const before = made;
  socket.destroy();
  await once(socket, 'close');
  // Another answer takes its turns between those of the first one.
  assert.equal((await fetch(origin, { method: 'HEAD' })).status, 200);
  assert.ok(before < 100_000 && made < 100_000, `${before}, then ${made} pieces were made`);
});

test('an answer that cannot be made costs its connection, and is told', async (t) => {
  const { origin, errors } = await startServer(t, () => Promise.reject(new Error('no figures')));
  await assert.rejects(fetch(origin));
  assert.match(String(errors[0]), /no figures/);
});

test('an address in use is named', async (t) => {
  const { port } = await startServer(t, () => assert.fail('nobody is asked'));
  const second = new HttpServer({ answer: () => assert.fail(), onError: () => undefined });
  await assert.rejects(second.listen({ host: '127.0.0.1', port }), (error) => {
    assert.ok(error instanceof BrokerError && error.code === 'LISTEN_FAILED');
    assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${port}: EADDRINUSE`));
    return true;
  });
  await second.close();
});
