import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/core/clock.ts';
import { PeerLink } from '../../src/net/peer-link.ts';
import { PeerServer } from '../../src/net/peer-server.ts';

const common = { frameBytesMax: 1024, clock: systemClock };

interface Heard {
  readonly frames: string[];
  readonly refused: string[];
}

async function server(t: TestContext, secret: string): Promise<Heard & { port: number }> {
  const [frames, refused]: [string[], string[]] = [[], []];
  const peers = new PeerServer({
    ...{ ...common, secret, hello: () => Buffer.from('server') },
    onPeer: (hello, reply) => (frame) => {
      frames.push(`${hello}: ${frame}`);
      reply([Buffer.from('answer to '), frame]);
    },
    onRefused: (reason) => refused.push(reason),
  });
  t.after(() => peers.close());
  const { port } = await peers.listen({ host: '127.0.0.1', port: 0 });
  return { frames, refused, port };
}

function link(t: TestContext, port: number, secret: string) {
  const [frames, refused, hellos]: [string[], string[], string[]] = [[], [], []];
  let onUp: () => void = () => undefined;
  let onNews: () => void = () => undefined;
  const up = new Promise<void>((resolve) => {
    onUp = resolve;
  });
  const made = new PeerLink({
    ...{ ...common, secret, hello: () => Buffer.from('client') },
    address: () => ({ host: '127.0.0.1', port }),
    onHello: (hello) => hellos.push(hello.toString()),
    onUp: () => onUp(),
    onDown: () => undefined,
    onRefused: (reason) => {
      refused.push(reason);
      onNews();
    },
    onFrame: (frame) => {
      frames.push(frame.toString());
      onNews();
    },
  });
  t.after(() => made.stop());
  const news = () =>
    new Promise<void>((resolve) => {
      onNews = resolve;
    });
  return { made, frames, refused, hellos, up, news };
}

test('two nodes that know the secret tell each other who they are, and then frames', async (t) => {
  const { frames, port } = await server(t, 'the same secret');
  const { made, up, news, ...heard } = link(t, port, 'the same secret');
  await up;
  const answered = news();
  assert.equal(made.send([Buffer.from('a '), Buffer.from('frame')]), true);
  await answered;
  assert.deepEqual(frames, ['client: a frame']);
  assert.deepEqual([heard.frames, heard.hellos], [['answer to a frame'], ['server']]);
});

test('one that does not know the secret is told nothing and heard with nothing', async (t) => {
  const { frames, port } = await server(t, 'the secret');
  const { made, news, refused, hellos } = link(t, port, 'another secret');
  await news();
  assert.match(refused[0]!, /does not know the secret/);
  assert.equal(made.send([Buffer.from('x')]), false);
  assert.deepEqual([frames, hellos], [[], []]);
});

test('a stranger costs nothing but its connection', async (t) => {
  const { refused, port } = await server(t, 'the secret');
  for (const bytes of [
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.from([0, 0, 0, 0]),
    Buffer.from([0, 0, 0, 4, 1, 2, 3, 4]),
    Buffer.from([0x7f, 0xff, 0xff, 0xff]),
  ]) {
    const before = refused.length;
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('close', resolve));
    assert.equal(refused.length, before + 1);
  }
});
