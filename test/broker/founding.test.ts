/** Which of the nodes with new folders founds a cluster, and that one with data is not new. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Settings, withDefaults } from '../../src/config/settings.ts';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { FilePort } from '../../src/log/file-port.ts';
import { nodeFiles } from '../../src/log/node-files.ts';
import { type RunningNode, startNode } from '../../src/node.ts';
import { freePorts } from '../free-ports.ts';

interface Start {
  readonly settings?: Partial<Settings>;
  readonly files?: FilePort;
  readonly isFounder?: boolean;
}

function start(folder: string, { settings, ...more }: Start): Promise<RunningNode> {
  return startNode({
    settings: withDefaults({ 'admin.listen': '', ...settings, data: folder }),
    ...{ log: silentLogger, clock: systemClock, random: seededRandom(1), files: nodeFiles },
    ...{ directoryId: 'one', ...more },
    onSnapshotFetched: () => assert.fail('nobody offers a snapshot'),
    onFatal: (error) => assert.fail(String(error)),
  });
}

async function newFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'keylane-founding-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

test('a node that has data meets the others only when it can say of which cluster it is', async (t) => {
  const folder = await newFolder(t);
  const [port, peerPort, otherPort] = await freePorts(3);
  const alone = await start(folder, { settings: { listen: '127.0.0.1:0' } });
  await alone.stop();
  // Reading its data takes a while.
  let goOn: () => void = () => undefined;
  const mayRead = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  let isReading: () => void = () => undefined;
  const reads = new Promise<void>((resolve) => {
    isReading = resolve;
  });
  const slowFiles: FilePort = {
    ...nodeFiles,
    async list(path) {
      if (path.endsWith('/journal')) {
        isReading();
        await mayRead;
      }
      return nodeFiles.list(path);
    },
  };
  const starting = start(folder, {
    ...{ files: slowFiles, isFounder: true },
    settings: {
      listen: `127.0.0.1:${port}`,
      'cluster.nodes': `0@127.0.0.1:${peerPort},1@127.0.0.1:${otherPort}`,
      'cluster.secret': 'the secret of the tests',
    },
  });
  await reads;
  assert.equal(await isListening(peerPort!), false);
  goOn();
  const node = await starting;
  t.after(() => node.stop());
  assert.equal(await isListening(peerPort!), true);
  assert.notEqual(node.broker.replica.state.clusterId, '');
});
