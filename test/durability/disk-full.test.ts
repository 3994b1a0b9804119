/** A disk that really fills up: a small tmpfs under a broker in a process of its own. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import {
  offsetCommitRequest,
  offsetCommitResponse,
} from '../../src/protocol/schema/08-offset-commit.ts';
import {
  deleteTopicsRequest,
  deleteTopicsResponse,
} from '../../src/protocol/schema/20-delete-topics.ts';
import { batchOf, fetchFrom, produceTo, recordsOf } from '../broker/records.ts';
import { TestClient, until } from '../broker/support.ts';
import { BrokerProcess } from './process.ts';

const mib = 1024 * 1024;
const recordBytes = 64 * 1024;
/** Mounting a file system is for root alone. */
const skip = process.getuid?.() === 0 ? false : 'mounting a tmpfs needs root';

const settings = {
  'journal.file.bytes': 4 * mib,
  'journal.snapshot.bytes': 4 * mib,
  'disk.low.water.bytes': 8 * mib,
  'disk.reserve.bytes': 2 * mib,
};

function mountTmpfs(bytes: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder]);
  return folder;
}

function produceOne(client: TestClient, topic: string, n: number) {
  const value = `${n}:`.padEnd(recordBytes, 'x');
  return produceTo(client, { topic, records: batchOf([value]) });
}

/** Produces until the broker refuses; answers how many were acknowledged, and the refusal. */
async function fill(client: TestClient, topic: string): Promise<[number, ErrorCode]> {
  for (let n = 0; ; n++) {
    const { errorCode } = await produceOne(client, topic, n);
    if (errorCode !== ErrorCode.NONE) return [n, errorCode as ErrorCode];
  }
}

async function commit(client: TestClient, offset: number): Promise<number> {
  const answer = await client.ask(offsetCommitRequest, offsetCommitResponse, 8, {
    groupId: 'full-group',
    topics: [
      {
        name: 'kept',
        partitions: [{ partitionIndex: 0, committedOffset: offset, committedMetadata: '' }],
      },
    ],
  });
  return answer.topics[0]!.partitions[0]!.errorCode;
}

/** Writes zeros until the disk takes no more. */
function fillDisk(path: string): void {
  const zeros = Buffer.alloc(64 * 1024);
  for (let bytes = zeros.length; bytes >= 512; ) {
    try {
      appendFileSync(path, zeros.subarray(0, bytes));
    } catch {
      bytes = Math.floor(bytes / 2);
    }
  }
}

async function countRecords(client: TestClient, topic: string): Promise<number> {
  let count = 0;
  for (;;) {
    const answer = await fetchFrom(client, [{ topic, offset: count }]);
    const records = recordsOf(answer.responses[0]?.partitions[0]?.records);
    if (records.length === 0) return count;
    for (const [offset, value] of records) assert.ok(value.startsWith(`${offset}:`));
    count += records.length;
  }
}

test('a full disk refuses produce, loses nothing, and serves again', { skip }, async (t) => {
  const folder = mountTmpfs(40 * mib);
  t.after(() => {
    execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true });
  });
  let broker = await BrokerProcess.start(join(folder, 'data'), settings);
  t.after(() => broker.kill());
  let client = await TestClient.connect(broker.address);
  await client.ask(metadataRequest, metadataResponse, 4, {
    topics: [{ name: 'kept' }, { name: 'dropped' }],
  });
  const kept = 20;
  for (let n = 0; n < kept; n++) await produceOne(client, 'kept', n);

  const [acknowledged, refusal] = await fill(client, 'dropped');
  assert.ok(acknowledged > 100, 'the disk took much before it was full');
  assert.equal(refusal, ErrorCode.KAFKA_STORAGE_ERROR);
  assert.equal(await commit(client, 1), ErrorCode.NONE, 'commits go on');

  const filler = join(folder, 'filler');
  fillDisk(filler);
  assert.equal(await commit(client, 2), ErrorCode.NONE, 'commits go on from the reserve');
  assert.equal(await countRecords(client, 'dropped'), acknowledged);

  // A crash on the full disk: the start needs no more space than there is.
  await broker.kill();
  client.close();
  broker = await BrokerProcess.start(join(folder, 'data'), settings);
  client = await TestClient.connect(broker.address);
  assert.equal(await countRecords(client, 'dropped'), acknowledged);

  const deleted = await client.ask(deleteTopicsRequest, deleteTopicsResponse, 1, {
    topicNames: ['dropped'],
    timeoutMs: 10_000,
  });
  assert.equal(deleted.responses[0]?.errorCode, ErrorCode.NONE, 'deletions go on');
  rmSync(filler);
  await until(
    async () => (await produceOne(client, 'kept', kept)).errorCode === ErrorCode.NONE,
    'produce is served again',
  );
  assert.equal(await countRecords(client, 'kept'), kept + 1);
  client.close();
  assert.equal(await broker.terminate(), 0);
});
