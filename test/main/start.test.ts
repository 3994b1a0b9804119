import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Keylane, launcher, run, startBroker, temporaryFolder } from './support.ts';

/** ApiVersions v0, correlation id 7, without a client id. */
const apiVersionsRequest = Buffer.from('0000000a0012000000000007ffff', 'hex');

async function answersApiVersions(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.write(apiVersionsRequest);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  assert.equal(answer.readInt32BE(4), 7);
  assert.equal(answer.readInt16BE(8), 0);
}

describe('start', () => {
  test('the ready line tells the real port, and the broker answers there', async (t) => {
    const broker = await startBroker(t, temporaryFolder(t), ['--set', 'node.id=5']);
    const { address, port, nodeId, version, startMs } = broker.address;
    assert.equal(address, `127.0.0.1:${port}`);
    assert(port > 0);
    assert.equal(nodeId, 5);
    assert.match(version, /^\d+\.\d+\.\d+$/);
    assert(Number.isInteger(startMs) && startMs > 0);
    await answersApiVersions(port);
  });

  test('every line of the log is JSON with level, time and message', async (t) => {
    const broker = await startBroker(t, temporaryFolder(t));
    await broker.stop();
    assert(broker.lines.length >= 3);
    for (const line of broker.lines) {
      const { level, time, msg } = JSON.parse(line) as Record<string, string>;
      assert.match(level!, /^(info|warn)$/);
      assert(!Number.isNaN(Date.parse(time!)));
      assert(msg!.length > 0);
    }
  });

  test('the folder is made, with its parents, and its identity stays', async (t) => {
    const data = join(temporaryFolder(t), 'some', 'where');
    await (await startBroker(t, data)).stop();
    const first = readFileSync(join(data, 'meta.json'), 'utf8');
    const meta = JSON.parse(first) as Record<string, unknown>;
    assert.equal(meta['version'], 1);
    assert.equal(meta['nodeId'], 0);
    assert.match(String(meta['directoryId']), /^[0-9a-f-]{36}$/);
    await (await startBroker(t, data)).stop();
    assert.equal(readFileSync(join(data, 'meta.json'), 'utf8'), first);
  });

  const skip = process.platform !== 'linux' && 'asks the kernel by way of /proc';
  test('the thread pool is sized before anything uses it', { skip }, async (t) => {
    const broker = await startBroker(t, temporaryFolder(t));
    const status = readFileSync(`/proc/${broker.child.pid}/status`, 'utf8');
    // Node has seven threads besides the pool, which makes eleven with the usual pool of four.
    const threads = Number(/Threads:\s+(\d+)/.exec(status)![1]);
    assert(threads > 11, `${threads} threads`);
  });

  test('a settings file and the environment take effect', async (t) => {
    const folder = temporaryFolder(t);
    const config = join(folder, 'keylane.json');
    writeFileSync(config, JSON.stringify({ data: join(folder, 'data'), 'node.id': 3 }));
    const broker = new Keylane(t, ['start', '--config', config], {
      environment: { KEYLANE_LISTEN: '127.0.0.1:0' },
    });
    assert.equal((await broker.ready()).nodeId, 3);
    assert(existsSync(join(folder, 'data', 'meta.json')));
  });
});

describe('a refused start', () => {
  test('wrong settings are listed, with status 2 and nothing written', async (t) => {
    const data = join(temporaryFolder(t), 'data');
    const args = ['start', '--data', data, '--set', 'num.partitions=0', '--set', 'log.levle=info'];
    const { code, output } = await run(t, args, { environment: { KEYLANE_NODE_ID: 'x' } });
    assert.equal(code, 2);
    assert.match(output, /3 settings are wrong/);
    assert.match(output, /KEYLANE_NODE_ID: "x" is not allowed; allowed: an integer/);
    assert.match(output, /--set num\.partitions: 0 is not allowed/);
    assert.match(output, /--set log\.levle: unknown setting; did you mean log\.level\?/);
    assert(!existsSync(data));
  });

  test('a settings file that is not there has status 2', async (t) => {
    const { code, output } = await run(t, ['start', '--config', '/nowhere/keylane.json']);
    assert.equal(code, 2);
    assert.match(output, /--config \/nowhere\/keylane\.json: cannot be read: ENOENT/);
  });

  test('a second broker on the same folder is told the pid of the first', async (t) => {
    const data = temporaryFolder(t);
    const first = await startBroker(t, data);
    const second = await run(t, ['start', '--listen', '127.0.0.1:0', '--data', data]);
    assert.equal(second.code, 1);
    assert.match(second.output, new RegExp(`another broker uses .*: process ${first.child.pid}`));
    await answersApiVersions(first.address.port);
  });

  test('the data of another node is not touched', async (t) => {
    const data = temporaryFolder(t);
    await (await startBroker(t, data, ['--set', 'node.id=1'])).stop();
    const args = ['start', '--listen', '127.0.0.1:0', '--data', data, '--set', 'node.id=2'];
    const { code, output } = await run(t, args);
    assert.equal(code, 2);
    assert.match(output, /node\.id is 2, but the data folder .* belongs to node 1/);
  });

  test('an address in use is named, without a stack', async (t) => {
    const first = await startBroker(t, temporaryFolder(t));
    const { address } = first.address;
    const args = ['start', '--listen', address, '--data', temporaryFolder(t)];
    const { code, output } = await run(t, args);
    assert.equal(code, 1);
    assert(output.includes(address));
    assert(!output.includes(' at '));
  });

  test('a data folder that cannot be made is named', async (t) => {
    const file = join(temporaryFolder(t), 'file');
    writeFileSync(file, '');
    const { code, output } = await run(t, ['start', '--data', join(file, 'data')]);
    assert.equal(code, 1);
    assert.match(output, /the data folder .*file\/data cannot be used: ENOTDIR/);
  });
});

describe('on a terminal', () => {
  test('a banner tells people what they need to know', async (t) => {
    const data = temporaryFolder(t);
    const program = `'${process.execPath}' '${launcher(t)}'`;
    const command = `${program} start --listen 127.0.0.1:0 --data '${data}'`;
    // script(1) of util-linux gives the command a terminal; the pid stands in the banner.
    const broker = new Keylane(t, [], { command: ['script', '-qec', command, '/dev/null'] });
    const listens = /listens on {3}(127\.0\.0\.1:\d+)/.exec(await broker.line(/listens on/))!;
    await broker.line(/bootstrap\.servers=127\.0\.0\.1:\d+/);
    await answersApiVersions(Number(listens[1]!.split(':')[1]));
    await broker.line(/Ctrl\+C/);
    assert.match(broker.output, new RegExp(`data folder {2}${data}`));
    const pid = Number(/process {6}(\d+) \(node 0\)/.exec(broker.output)![1]);
    process.kill(pid, 'SIGINT');
    assert.deepEqual(await broker.exited, { code: 0, signal: null });
    assert.match(broker.output, /\d\d:\d\d:\d\d info {2}stopping signal=SIGINT/);
  });
});
