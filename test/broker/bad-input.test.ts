/** Bytes that are no requests cost at most their own connection; others notice nothing. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { withDefaults } from '../../src/config/settings.ts';
import { seededRandom } from '../../src/core/random.ts';
import { ApiKey } from '../../src/protocol/api-keys.ts';
import { decode } from '../../src/protocol/codec.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { encodeRequest } from '../../src/protocol/frame.ts';
import { metadataRequest } from '../../src/protocol/schema/03-metadata.ts';
import {
  apiVersionsRequest,
  apiVersionsResponse,
} from '../../src/protocol/schema/18-api-versions.ts';
import { expectClosed, startWorld } from './bad-input-world.ts';
import { framed, requestFrame } from './raw-client.ts';
import { until } from './support.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

test('a size that no request has ends the connection at once', async (t) => {
  const world = await startWorld(t);
  const tooMuch = Buffer.alloc(4);
  tooMuch.writeInt32BE(withDefaults()['socket.request.max.bytes'] + 1);
  for (const [what, size] of [
    ['negative', hex('ffffffff')],
    ['most negative', hex('80000000')],
    ['zero', hex('00000000')],
    ['less than a header', hex('00000007')],
    ['largest int32', hex('7fffffff')],
    ['more than socket.request.max.bytes', tooMuch],
    ['TLS', hex('16030100')],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')],
  ] as const) {
    await expectClosed(world, size, what);
  }
  await world.finish();
});

test('a size of socket.request.max.bytes to the byte is a request, one more is none', async (t) => {
  const world = await startWorld(t, { 'socket.request.max.bytes': 1024 });
  const client = await world.connect();
  const body = Buffer.alloc(1024 - 8 - 2 - 'bad'.length);
  // An empty list of topics; like Kafka, the broker does not look at what follows it.
  client.write(requestFrame(ApiKey.Metadata, 1, body));
  assert.ok((await client.next()) !== undefined);
  const longer = Buffer.alloc(body.length + 1);
  await expectClosed(world, requestFrame(ApiKey.Metadata, 1, longer), 'one byte more');
  await world.finish();
});

test('random bytes end their connection', async (t) => {
  const world = await startWorld(t);
  const random = seededRandom(1);
  for (let round = 0; round < 200; round++) {
    const bytes = random.bytes(4 + Math.floor(random.next() * 200));
    const client = await world.connect();
    client.write(bytes);
    if (round % 2 === 0) client.write(random.bytes(65_536));
    // A size may be legal by chance; then the rest of it is waited for, and never comes.
    const size = bytes.readInt32BE(0);
    const isLegal = size >= 8 && size <= 100 * 1024 * 1024;
    if (isLegal) client.close();
    assert.equal(await client.next(), undefined);
    // The same as the content of a frame.
    const frame = random.bytes(8 + Math.floor(random.next() * 100));
    await expectClosed(world, framed(frame), frame.toString('hex'));
  }
  await world.finish();
});

test('an API or a version that is not known ends the connection', async (t) => {
  const world = await startWorld(t);
  const { apis } = world.node.broker;
  for (const apiKey of [-32768, -1, 4, 5, 6, 7, 58, 95, 1000, 32767]) {
    await expectClosed(world, requestFrame(apiKey, 0, Buffer.alloc(8)), `API ${apiKey}`);
  }
  for (const { apiKey, versions } of apis.values()) {
    if (apiKey === ApiKey.ApiVersions) continue;
    for (const version of [-32768, versions[0] - 1, versions[1] + 1, 32767]) {
      const what = `API ${apiKey} version ${version}`;
      await expectClosed(world, requestFrame(apiKey, version, Buffer.alloc(64)), what);
    }
  }
  await world.finish();
});

test('ApiVersions is answered in any version, in version 0 where it is not known', async (t) => {
  const world = await startWorld(t);
  const [min, max] = world.node.broker.apis.get(ApiKey.ApiVersions)!.versions;
  const client = await world.connect();
  for (const version of [-32768, -1, max + 1, 99, 32767]) {
    for (const body of [Buffer.alloc(0), Buffer.alloc(40, 0xff)]) {
      client.write(requestFrame(ApiKey.ApiVersions, version, body, version));
      const frame = await client.next();
      assert.ok(frame !== undefined, `version ${version}`);
      assert.equal(frame.readInt32BE(0), version);
      const answer = decode(apiVersionsResponse, 0, frame, 4);
      assert.equal(answer.errorCode, ErrorCode.UNSUPPORTED_VERSION);
      assert.deepEqual(
        answer.apiKeys.map(({ apiKey, minVersion, maxVersion }) => [
          apiKey,
          minVersion,
          maxVersion,
        ]),
        [[ApiKey.ApiVersions, min, max]],
      );
    }
  }
  // The connection goes on.
  client.write(requestFrame(ApiKey.ApiVersions, 0, Buffer.alloc(0), 7));
  assert.equal((await client.next())?.readInt32BE(0), 7);
  await world.finish();
});

test('software without a proper name is told so, and may go on', async (t) => {
  const world = await startWorld(t);
  const client = await world.node.connect();
  for (const clientSoftwareName of ['', '-', 'a-', 'with space', 'é', `${'x'.repeat(32_766)}\n`]) {
    const answer = await client.ask(apiVersionsRequest, apiVersionsResponse, 3, {
      clientSoftwareName,
      clientSoftwareVersion: '1',
    });
    assert.deepEqual([answer.errorCode, answer.apiKeys], [ErrorCode.INVALID_REQUEST, []]);
  }
  await world.finish();
});

test('a header that is cut short or makes no sense ends the connection', async (t) => {
  const world = await startWorld(t);
  for (const [what, header] of [
    ['no client id', '0003 0001 00000001'],
    ['half a length', '0003 0001 00000001 00'],
    ['client id longer than the frame', '0003 0001 00000001 7fff 61'],
    ['client id that is not UTF-8', '0003 0001 00000001 0002 c328 00000000'],
    ['tags that are not there', '0003 0009 00000001 0000'],
    ['a tag longer than the frame', '0003 0009 00000001 0000 01 00 7f 00'],
    ['more tags than bytes', '0003 0009 00000001 0000 ffffffff0f 0000'],
    ['a varint without an end', '0003 0009 00000001 0000 ffffffffffff'],
  ] as const) {
    await expectClosed(world, framed(hex(header)), what);
  }
  await world.finish();
});

test('a body that does not fit ends the connection', async (t) => {
  const world = await startWorld(t);
  const topics = [{ name: 'one' }, { name: 'two' }];
  const whole = Buffer.concat(encodeRequest(metadataRequest, 1, 1, 'bad', { topics }));
  const body = whole.subarray(4 + 8 + 2 + 3);
  for (let bytes = 0; bytes < body.length; bytes++) {
    const cut = requestFrame(ApiKey.Metadata, 1, body.subarray(0, bytes));
    await expectClosed(world, cut, `cut to ${bytes}`);
  }
  for (const [what, bytes] of [
    ['too high a count', hex('00000003 0003 6f6e65 0003 74776f')],
    ['the highest count', hex('7fffffff 0003 6f6e65 0003 74776f')],
    ['a string longer than the frame', hex('00000001 7fff 6f6e65')],
    ['null where no null may be', hex('00000001 ffff')],
    ['not UTF-8', hex('00000001 0002 c328')],
    ['a surrogate', hex('00000001 0003 eda080')],
    ['overlong UTF-8', hex('00000001 0002 c0af')],
  ] as const) {
    await expectClosed(world, requestFrame(ApiKey.Metadata, 1, bytes), what);
  }
  await world.finish();
});

test('what follows a bad request on its connection is not looked at', async (t) => {
  const world = await startWorld(t);
  const client = await world.connect();
  const create = encodeRequest(metadataRequest, 4, 9, 'bad', {
    topics: [{ name: 'after-bad' }],
    allowAutoTopicCreation: true,
  });
  client.write(Buffer.concat([requestFrame(1234, 0, Buffer.alloc(8)), ...create]));
  assert.equal(await client.next(), undefined);
  assert.equal(world.node.broker.topics.byName('after-bad'), undefined);
  await world.finish();
});

test('a client that stops in the middle of a frame is closed when it has been idle', async (t) => {
  const world = await startWorld(t);
  const { clock } = world.node;
  const idleMs = withDefaults()['connections.max.idle.ms'];
  const whole = requestFrame(ApiKey.Metadata, 1, hex('ffffffff'));
  const halves = await Promise.all(
    [2, 4, 9, whole.length - 1].map(async (bytes) => {
      const client = await world.connect();
      client.write(whole.subarray(0, bytes));
      return client;
    }),
  );
  const busy = await world.connect();
  const passes = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 5000) {
      clock.advance(5000);
      busy.write(whole);
      assert.ok((await busy.next()) !== undefined);
      // The good client must not seem idle either while it waits for the disk.
      const { rounds } = world.good;
      await until(() => world.good.rounds > rounds, 'a round of the good client');
    }
  };
  await passes(idleMs - 10_000);
  assert.deepEqual(
    halves.map(({ isClosed }) => isClosed),
    halves.map(() => false),
  );
  // What was sent may have arrived when time went by already.
  const isOver = () => halves.every(({ isClosed }) => isClosed);
  for (let steps = 0; !isOver(); steps++) {
    assert.ok(steps < 100, 'they are closed');
    await passes(5000);
  }
  assert.equal(busy.isClosed, false);
  await world.finish();
});

test('hundreds of idle and half-open connections keep nobody from working', async (t) => {
  const world = await startWorld(t);
  const idle = await Promise.all(Array.from({ length: 400 }, () => world.connect()));
  for (const [i, client] of idle.entries()) {
    // A quarter each: nothing, half a size, a large size without content, a whole request.
    if (i % 4 === 1) client.write(hex('0000'));
    if (i % 4 === 2) client.write(Buffer.concat([hex('06000000'), Buffer.alloc(1000)]));
    if (i % 4 === 3) client.write(requestFrame(ApiKey.ApiVersions, 0, Buffer.alloc(0)));
  }
  const before = world.good.rounds;
  await until(() => world.good.rounds > before + 10, 'ten rounds beside idle connections');
  assert.ok(idle.every(({ isClosed }) => !isClosed));
  for (const client of idle) client.close();
  await world.finish();
});
