import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiKey, apiName, isFlexible } from '../../src/protocol/api-keys.ts';
import { decode } from '../../src/protocol/codec.ts';
import { ErrorCode, errorName } from '../../src/protocol/error-codes.ts';
import {
  decodeRequestHead,
  encodeRequest,
  encodeResponse,
  requestHeaderVersion,
  responseHeaderVersion,
} from '../../src/protocol/frame.ts';
import { allTables, decodeRequest, tablesOf } from '../../src/protocol/registry.ts';
import { fetchResponse } from '../../src/protocol/schema/01-fetch.ts';
import { heartbeatRequest, heartbeatResponse } from '../../src/protocol/schema/12-heartbeat.ts';
import { apiVersionsResponse } from '../../src/protocol/schema/18-api-versions.ts';
import { requestHeader } from '../../src/protocol/schema/request-header.ts';
import { messageVectors } from './vectors.ts';

test('the header of a request is read as its table says', () => {
  let seen = 0;
  for (const { table, vector } of messageVectors()) {
    if (table !== requestHeader) continue;
    seen++;
    const bytes = Buffer.from(vector.hex, 'hex');
    // The vectors' API is none, so the one that decides on the header's version is put in place.
    bytes.writeInt16BE(ApiKey.ApiVersions, 0);
    bytes.writeInt16BE(vector.version === 2 ? 3 : 2, 2);
    const expected = decode(requestHeader, vector.version, bytes);
    const head = decodeRequestHead(bytes, 0, bytes.length);
    assert.equal(head.apiKey, expected.requestApiKey);
    assert.equal(head.apiVersion, expected.requestApiVersion);
    assert.equal(head.correlationId, expected.correlationId);
    assert.equal(head.clientId, expected.clientId ?? '');
    assert.equal(head.bodyStart, bytes.length);
  }
  assert.ok(seen > 8);
});

test('every vector has the header version that Kafka gives it', () => {
  for (const { table, vector } of messageVectors()) {
    const { headerVersion, apiKey } = vector;
    if (headerVersion === undefined || apiKey === undefined) continue;
    const versionOf = table.name.endsWith('Request') ? requestHeaderVersion : responseHeaderVersion;
    assert.equal(
      versionOf(apiKey, vector.version),
      headerVersion,
      `${table.name} ${vector.version}`,
    );
  }
});

test('the facts of an API agree with its tables', () => {
  for (const { request, response } of allTables()) {
    assert.equal(request.apiKey, response.apiKey);
    assert.deepEqual(request.versions, response.versions);
    assert.equal(request.name, `${apiName(request.apiKey)}Request`);
    assert.equal(response.name, `${apiName(request.apiKey)}Response`);
    assert.equal(tablesOf(request.apiKey)?.request, request);
    for (let version = request.versions[0]; version <= request.versions[1]; version++) {
      const fromTable = request.flexibleFrom !== null && version >= request.flexibleFrom;
      assert.equal(isFlexible(request.apiKey, version), fromTable, `${request.name} ${version}`);
    }
  }
});

test('a request goes through a frame and back', () => {
  const body = { groupId: 'g', generationId: 4, memberId: 'm' };
  for (const version of [0, 3, 4]) {
    for (const clientId of ['client', '', null]) {
      const frame = Buffer.concat(encodeRequest(heartbeatRequest, version, 77, clientId, body));
      assert.equal(frame.readInt32BE(0), frame.length - 4);
      const head = decodeRequestHead(frame, 4, frame.length);
      assert.equal(head.apiKey, ApiKey.Heartbeat);
      assert.equal(head.apiVersion, version);
      assert.equal(head.correlationId, 77);
      assert.equal(head.clientId, clientId ?? '');
      const read = decodeRequest(head.apiKey, version, frame, head.bodyStart, frame.length);
      assert.deepEqual(read, { ...body, groupInstanceId: null });
    }
  }
});

test('the size of a response counts the batches that it refers to', () => {
  const records = Buffer.alloc(100_000, 1);
  const pieces = encodeResponse(fetchResponse, 12, 5, {
    responses: [
      {
        topic: 't',
        partitions: [{ partitionIndex: 0, errorCode: 0, highWatermark: 9, records }],
      },
    ],
  });
  const frame = Buffer.concat(pieces);
  assert.equal(frame.readInt32BE(0), frame.length - 4);
  assert.equal(frame.readInt32BE(4), 5);
  assert.equal(frame[8], 0);
  const read = decode(fetchResponse, 12, frame, 9);
  assert.equal(read.responses[0]?.partitions[0]?.records?.length, records.length);
});

test('the header of a response has a tagged section where flexible, ApiVersions never', () => {
  const plain = encodeResponse(heartbeatResponse, 3, 1, { throttleTimeMs: 0, errorCode: 0 });
  assert.equal(Buffer.concat(plain).toString('hex'), '0000000a00000001000000000000');
  const flexible = encodeResponse(heartbeatResponse, 4, 1, { throttleTimeMs: 0, errorCode: 0 });
  assert.equal(Buffer.concat(flexible).toString('hex'), '0000000c000000010000000000000000');
  const versions = encodeResponse(apiVersionsResponse, 3, 1, { errorCode: 0, apiKeys: [] });
  assert.equal(Buffer.concat(versions).toString('hex'), '0000000c000000010000010000000000');
});

test('an API that is not known has a number for a name and the older header', () => {
  assert.equal(apiName(9999), '9999');
  assert.equal(apiName(ApiKey.Produce), 'Produce');
  assert.ok(!isFlexible(9999, 99));
  assert.ok(!isFlexible(ApiKey.OffsetDelete, 99));
});

test('error codes have one name each', () => {
  const codes = Object.values(ErrorCode);
  assert.equal(new Set(codes).size, codes.length);
  assert.equal(errorName(ErrorCode.NOT_LEADER_OR_FOLLOWER), 'NOT_LEADER_OR_FOLLOWER');
  assert.equal(errorName(-1), 'UNKNOWN_SERVER_ERROR');
  assert.equal(errorName(4242), '4242');
});
