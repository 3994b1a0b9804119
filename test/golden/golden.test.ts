/** Data folders of every format version so far open, and hold what they held. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { codecs } from '../../src/core/codecs.ts';
import { checkJournal } from '../../src/log/check.ts';
import { nodeFiles } from '../../src/log/node-files.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { describe } from './describe.ts';
import { openGolden } from './open.ts';
import { topicSettings } from '../replica/topic-settings.ts';

/** The highest entry type that there was when the folder of a version was made. */
const newestTypes: Readonly<Record<string, number>> = { v1: 15, v2: 15, v3: 16, v4: 23 };
const goldenFolder = fileURLToPath(new URL('../../../test/golden/', import.meta.url));
const versions = readdirSync(goldenFolder).filter((name) => /^v\d+$/.test(name));

/** A copy to work on; golden folders are never changed. */
function copyOf(version: string, t: { after(done: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-golden-'));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(join(goldenFolder, version), folder, { recursive: true });
  return folder;
}

function expectedOf(version: string): Record<string, unknown> & { terms: number[] } {
  return JSON.parse(readFileSync(join(goldenFolder, version, 'expected.json'), 'utf8'));
}

/** Opens, compares, and closes; each start adds a term. */
async function expectSame(version: string, folder: string, startsBefore: number): Promise<void> {
  const { replica } = await openGolden(folder);
  const { terms, ...found } = await describe(replica);
  const { terms: expectedTerms, ...expected } = expectedOf(version);
  assert.deepEqual(found, expected);
  assert.deepEqual(terms.slice(0, expectedTerms.length), expectedTerms);
  assert.equal(terms.length, expectedTerms.length + 1 + startsBefore);
  await replica.stop();
}

test('there is a folder of each version', () => {
  assert.deepEqual(versions, Object.keys(newestTypes));
});

for (const version of versions) {
  test(`${version} opens and holds what it held`, async (t) => {
    const folder = copyOf(version, t);
    await expectSame(version, folder, 0);
    await expectSame(version, folder, 1);
  });

  test(`${version} opens by its journal alone`, async (t) => {
    const folder = copyOf(version, t);
    rmSync(join(folder, 'snapshots'), { recursive: true });
    rmSync(join(folder, 'journal/index'), { recursive: true });
    await expectSame(version, folder, 0);
  });

  test(`${version} takes more records`, async (t) => {
    const folder = copyOf(version, t);
    const { replica, planner } = await openGolden(folder);
    const before = replica.state.topics.partitions.end(0);
    const records = [{ key: null, value: Buffer.from('more'), timestamp: 1 }];
    const part = {
      partition: 0,
      topicPartition: 'orders-0',
      settings: { ...topicSettings, messageBytesMax: 1000 },
      records: buildBatch({ records }, codecs),
    };
    const offset = await new Promise((resolve) => {
      planner.produce([part], 11, ([outcome]) => resolve(outcome?.baseOffset));
    });
    assert.equal(offset, before);
    await replica.stop();
    const again = await openGolden(folder);
    assert.equal(again.replica.state.topics.partitions.end(0), before + 1);
    await again.replica.stop();
  });

  test(`${version} is sound, and has entries of every type of its time`, async () => {
    const lines: string[] = [];
    const isSound = await checkJournal({
      files: nodeFiles,
      folder: join(goldenFolder, version),
      entryTypeName: (type) => `<${type}>`,
      onLine: (line) => lines.push(line),
    });
    assert.ok(isSound, lines.join('\n'));
    const types = lines.find((line) => line.startsWith('entries by type'))!;
    for (const type of Object.values(EntryType)) {
      if (type <= newestTypes[version]!) assert.ok(types.includes(`<${type}>`), types);
    }
  });
}
