import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Keylane, startBroker, temporaryFolder } from './support.ts';

/** Code that runs in the broker's process before its own, to make something go wrong there. */
function preload(code: string): { environment: NodeJS.ProcessEnv } {
  const url = `data:text/javascript,${encodeURIComponent(code)}`;
  return { environment: { NODE_OPTIONS: `--import=${url}` } };
}

function linesOf(broker: Keylane, level: string): Record<string, unknown>[] {
  return broker.lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line['level'] === level);
}

describe('signals', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal} stops the broker, with status 0`, async (t) => {
      const broker = await startBroker(t, temporaryFolder(t));
      assert.deepEqual(await broker.stop(signal), { code: 0, signal: null });
      await broker.line(/"msg":"stopped"/);
    });
  }

  test('a second signal ends it at once, with status 1', async (t) => {
    // A stop that would take ever so long: closing sockets is what it waits for.
    const never = `import net from 'node:net'; net.Server.prototype.close = () => undefined;`;
    const broker = await startBroker(t, temporaryFolder(t), [], preload(never));
    broker.child.kill('SIGTERM');
    await broker.line(/"msg":"stopping"/);
    assert.deepEqual(await broker.stop('SIGTERM'), { code: 1, signal: null });
  });

  test('a killed broker leaves nothing that hinders the next start', async (t) => {
    const data = temporaryFolder(t);
    for (let round = 0; round < 3; round++) {
      const broker = await startBroker(t, data);
      assert.deepEqual(await broker.stop('SIGKILL'), { code: null, signal: 'SIGKILL' });
    }
    const last = await startBroker(t, data);
    assert.equal((await last.stop()).code, 0);
  });
});

describe('errors that nobody foresaw', () => {
  const cases = [
    ['an exception', `throw new Error('out of the blue')`],
    ['a rejection', `Promise.reject(new Error('out of the blue'))`],
  ] as const;
  for (const [what, code] of cases) {
    test(`${what} ends the process with one fatal line and status 1`, async (t) => {
      const trap = preload(`process.on('SIGUSR2', () => { ${code} })`);
      const broker = await startBroker(t, temporaryFolder(t), [], trap);
      assert.deepEqual(await broker.stop('SIGUSR2'), { code: 1, signal: null });
      const fatal = linesOf(broker, 'fatal');
      assert.equal(fatal.length, 1);
      assert.equal(fatal[0]!['msg'], 'fatal: out of the blue');
      const { stack } = fatal[0]!['err'] as { stack: string };
      assert.match(stack, /out of the blue\n +at /);
    });
  }

  test('a reader of the log that goes away does not end the broker', async (t) => {
    const broker = await startBroker(t, temporaryFolder(t));
    broker.child.stdout!.destroy();
    broker.child.stderr!.destroy();
    // Its next line, "stopping", meets a closed pipe.
    assert.deepEqual(await broker.stop('SIGTERM'), { code: 0, signal: null });
  });
});
