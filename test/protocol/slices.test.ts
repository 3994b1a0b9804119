import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { EncodeError } from '../../src/protocol/codec-error.ts';
import { type ApiTable, encodeResponse } from '../../src/protocol/frame.ts';
import { metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import { listGroupsResponse } from '../../src/protocol/schema/16-list-groups.ts';
import type { Fields } from '../../src/protocol/schema-types.ts';
import { encodeInSlices, Lazy, lazyMap } from '../../src/protocol/slices.ts';
import { hasField, type Struct } from '../../src/protocol/table.ts';
import { randomStruct } from './random-values.ts';
import { tablesByName } from './vectors.ts';

function run(slices: Generator<undefined, Buffer[]>): { bytes: Buffer; yields: number } {
  for (let yields = 0; ; yields++) {
    const next = slices.next();
    if (next.done === true) return { bytes: Buffer.concat(next.value), yields };
  }
}

/** The same value with every list of structs made lazy that may be. */
function lazily(fields: Fields, value: Struct, version: number): Struct {
  const lazy: Struct = {};
  for (const [name, given] of Object.entries(value)) {
    const field = fields[name]!;
    const isList = 'items' in field && typeof field.items === 'object' && Array.isArray(given);
    if (!isList || field.tag !== undefined || !hasField(field, version)) lazy[name] = given;
    else {
      const items = field.items as Fields;
      lazy[name] = lazyMap(given as Struct[], (item) => lazily(items, item, version));
    }
  }
  return lazy;
}

test('lazy lists give the bytes of plain ones, in every response and version', () => {
  const random = seededRandom(1);
  let count = 0;
  for (const table of tablesByName().values()) {
    if (table.apiKey === undefined || !table.name.endsWith('Response')) continue;
    for (let version = table.versions[0]; version <= table.versions[1]; version++) {
      for (let i = 0; i < 5; i++) {
        const value = randomStruct(table.fields, version, random, true);
        const expected = Buffer.concat(
          encodeResponse(table as ApiTable, version, 7, value as never),
        );
        const lazy = lazily(table.fields, value, version);
        const { bytes } = run(encodeInSlices(table as ApiTable, version, 7, lazy as never));
        assert.deepEqual(bytes, expected, `${table.name} ${version}`);
        count++;
      }
    }
  }
  assert.ok(count > 500);
});

test('items are made when their slice comes, and undefined is a pause without an item', () => {
  let made = 0;
  const groupOf = (index: number) => {
    made++;
    if (index % 1000 === 999) return undefined;
    return { groupId: `group-${index}`, protocolType: 'x', groupState: '', groupType: '' };
  };
  const indexes = Array.from({ length: 20_000 }, (_, index) => index);
  const slices = encodeInSlices(listGroupsResponse, 5, 7, {
    errorCode: 0,
    groups: lazyMap(indexes, groupOf),
  });
  assert.equal(made, 0);
  assert.equal(slices.next().done, false);
  assert.equal(made, 1000);
  const { bytes, yields } = run(slices);
  assert.equal(made, 20_000);
  assert.equal(yields, 19);
  const groups = indexes.map(groupOf).filter((group) => group !== undefined);
  const expected = encodeResponse(listGroupsResponse, 5, 7, { errorCode: 0, groups });
  assert.deepEqual(bytes, Buffer.concat(expected));
});

test('a value that the version cannot carry is an error, when its turn comes', () => {
  const partitions = new Lazy([{ errorCode: 0 } as never]);
  const topic = { errorCode: 0, name: null, topicId: '0'.repeat(32), partitions };
  const slices = encodeInSlices(metadataResponse, 9, 7, { brokers: [], topics: new Lazy([topic]) });
  assert.throws(() => run(slices), EncodeError);
});
