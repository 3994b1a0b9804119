/** Reads the golden vectors and turns their JSON into what the codec takes and gives. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { ApiKey } from '../../src/protocol/api-keys.ts';
import { allTables } from '../../src/protocol/registry.ts';
import { consumerProtocolAssignment } from '../../src/protocol/schema/consumer-protocol-assignment.ts';
import { consumerProtocolSubscription } from '../../src/protocol/schema/consumer-protocol-subscription.ts';
import { requestHeader } from '../../src/protocol/schema/request-header.ts';
import { responseHeader } from '../../src/protocol/schema/response-header.ts';
import type {
  Field,
  Fields,
  Input,
  MessageTable,
  ScalarType,
} from '../../src/protocol/schema-types.ts';
import { defaultOf, hasField, type Struct } from '../../src/protocol/table.ts';

export interface MessageVector {
  readonly apiKey?: number;
  readonly name: string;
  readonly version: number;
  readonly variant: string;
  readonly json: Struct;
  readonly records?: Readonly<Record<string, string>>;
  readonly hex: string;
  readonly prefixedHex?: string;
  readonly headerVersion?: number;
}

export interface PrimitiveVector {
  readonly kind: string;
  readonly hex: string;
  readonly value?: string;
  readonly text?: string;
  readonly reads?: string;
  readonly kafkaError?: string;
}

export function readVectors<T>(name: string): T[] {
  const file = new URL(`../../../test/vectors/${name}.jsonl.gz`, import.meta.url);
  const lines = gunzipSync(readFileSync(file)).toString('utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as T);
}

export function tablesByName(): Map<string, MessageTable> {
  const tables: MessageTable[] = [
    requestHeader,
    responseHeader,
    consumerProtocolSubscription,
    consumerProtocolAssignment,
  ];
  for (const { request, response } of allTables()) tables.push(request, response);
  return new Map(tables.map((table) => [table.name, table]));
}

/** The message vectors of all files for which there is a table. */
export function messageVectors(): { table: MessageTable; vector: MessageVector }[] {
  const tables = tablesByName();
  const found = [];
  for (const file of ['messages', 'messages-legacy', 'messages-newer']) {
    for (const vector of readVectors<MessageVector>(file)) {
      const table = tables.get(vector.name);
      if (table !== undefined) found.push({ table, vector });
    }
  }
  return found;
}

/** A field that Kafka renamed: its vectors of older versions have the older name. */
function jsonName(apiKey: number | undefined, name: string, json: Struct): string {
  const renamed = apiKey === ApiKey.TxnOffsetCommit && name === 'generationIdOrMemberEpoch';
  return renamed && 'generationId' in json ? 'generationId' : name;
}

/** What to encode for the vector: only the fields that its JSON has. */
export function inputOf(table: MessageTable, vector: MessageVector): Input<MessageTable> {
  return structOf(table.fields, vector.json, '', vector, false) as never;
}

/** What decoding must give: every field, absent ones at their defaults. */
export function outputOf(table: MessageTable, vector: MessageVector): Struct {
  return structOf(table.fields, vector.json, '', vector, true);
}

function structOf(
  fields: Fields,
  json: Struct,
  path: string,
  vector: MessageVector,
  complete: boolean,
): Struct {
  const value: Struct = {};
  const left = new Set(Object.keys(json));
  for (const [name, field] of Object.entries(fields)) {
    const key = jsonName(vector.apiKey, name, json);
    if (left.delete(key)) {
      if (!hasField(field, vector.version)) throw new Error(`${path}/${name} is not expected`);
      value[name] = fieldOf(field, json[key], `${path}/${key}`, vector, complete);
    } else if (complete) {
      value[name] = defaultOf(field);
    }
  }
  if (left.size > 0) throw new Error(`${vector.name}${path} has no ${[...left].join()}`);
  return value;
}

function fieldOf(
  field: Field,
  json: unknown,
  path: string,
  vector: MessageVector,
  complete: boolean,
): unknown {
  if (json === null) return null;
  if ('struct' in field) return structOf(field.struct, json as Struct, path, vector, complete);
  if ('items' in field) {
    const { items } = field;
    return (json as unknown[]).map((item, index) =>
      typeof items === 'string'
        ? scalarOf(items, item, path, vector)
        : structOf(items, item as Struct, `${path}/${index}`, vector, complete),
    );
  }
  return scalarOf(field.type, json, path, vector);
}

function scalarOf(type: ScalarType, json: unknown, path: string, vector: MessageVector): unknown {
  switch (type) {
    case 'int64':
      return typeof json === 'string' ? BigInt(json) : json;
    case 'uuid':
      return Buffer.from(json as string, 'base64url').toString('hex');
    case 'bytes':
      return Buffer.from(json as string, 'base64');
    case 'records':
      return Buffer.from(vector.records?.[path] ?? '', 'base64');
    default:
      return json;
  }
}
