/**
 * How fast the hot messages are read and written, and how much slower the interpreter is.
 * Run: node dist/bench/micro/codec.js
 */
import { cpus } from 'node:os';
import { encode } from '../../src/protocol/codec.ts';
import { compiledReader, compiledWriter } from '../../src/protocol/compiled.ts';
import { interpretRead, interpretWrite } from '../../src/protocol/interpreter.ts';
import { Reader } from '../../src/protocol/reader.ts';
import {
  type ProduceRequestInput,
  type ProduceResponseInput,
  produceRequest,
  produceResponse,
} from '../../src/protocol/schema/00-produce.ts';
import {
  type FetchRequestInput,
  type FetchResponseInput,
  fetchRequest,
  fetchResponse,
} from '../../src/protocol/schema/01-fetch.ts';
import { heartbeatRequest } from '../../src/protocol/schema/12-heartbeat.ts';
import type { MessageTable } from '../../src/protocol/schema-types.ts';
import type { Struct } from '../../src/protocol/table.ts';
import { Writer } from '../../src/protocol/writer.ts';

/** A round is repeated for this long; the best of the rounds counts, the rest is noise. */
const ROUND_MS = 150;
const ROUNDS = 5;

const batch = Buffer.alloc(16 * 1024, 7);
const topicId = '0123456789abcdef'.repeat(2);

function indexes(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function produce(partitions: number): ProduceRequestInput {
  return {
    acks: -1,
    timeoutMs: 30_000,
    topicData: [
      {
        name: 'orders.created',
        partitionData: indexes(partitions).map((index) => ({ index, records: batch })),
      },
    ],
  };
}

function produced(partitions: number): ProduceResponseInput {
  return {
    responses: [
      {
        name: 'orders.created',
        partitionResponses: indexes(partitions).map((index) => ({
          index,
          errorCode: 0,
          baseOffset: 123_456_789 + index,
          logStartOffset: 0,
        })),
      },
    ],
  };
}

function fetch(partitions: number): FetchRequestInput {
  return {
    maxWaitMs: 500,
    minBytes: 1,
    topics: [
      {
        topicId,
        partitions: indexes(partitions).map((partition) => ({
          partition,
          currentLeaderEpoch: 3,
          fetchOffset: 123_456_789,
          partitionMaxBytes: 1_048_576,
        })),
      },
    ],
  };
}

function fetched(partitions: number): FetchResponseInput {
  return {
    responses: [
      {
        topicId,
        partitions: indexes(partitions).map((partitionIndex) => ({
          partitionIndex,
          errorCode: 0,
          highWatermark: 123_456_789,
          lastStableOffset: 123_456_789,
          logStartOffset: 0,
          abortedTransactions: null,
          records: [batch, batch],
        })),
      },
    ],
  };
}

/** Nanoseconds for each call. */
function measure(run: () => unknown): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    let calls = 0;
    const start = performance.now();
    let elapsed = 0;
    while (elapsed < ROUND_MS) {
      for (let index = 0; index < 100; index++) run();
      calls += 100;
      elapsed = performance.now() - start;
    }
    best = Math.min(best, (elapsed * 1e6) / calls);
  }
  return best;
}

interface Row {
  readonly message: string;
  readonly compiledNs: number;
  readonly interpretedNs: number;
}

function rowsOf(label: string, table: MessageTable, version: number, value: unknown): Row[] {
  const input = value as Struct;
  const bytes = Buffer.concat(encode(table, version, input as never));
  const writer = new Writer();
  const read = compiledReader(table, version);
  const write = compiledWriter(table, version);
  const name = `${table.name} v${version}${label}`;
  return [
    {
      message: `read ${name}`,
      compiledNs: measure(() => read(new Reader(bytes, 0, bytes.length))),
      interpretedNs: measure(() =>
        interpretRead(table, version, new Reader(bytes, 0, bytes.length)),
      ),
    },
    {
      message: `write ${name}`,
      compiledNs: measure(() => {
        writer.reset();
        write(writer, input);
        return writer.finish();
      }),
      interpretedNs: measure(() => {
        writer.reset();
        interpretWrite(table, version, input, writer);
        return writer.finish();
      }),
    },
  ];
}

const heartbeat = { groupId: 'billing', generationId: 7, memberId: 'consumer-1-0f3c' };
const rows = [
  ...rowsOf(', 1 partition', produceRequest, 9, produce(1)),
  ...rowsOf(', 12 partitions', produceRequest, 9, produce(12)),
  ...rowsOf(', 12 partitions', produceResponse, 9, produced(12)),
  ...rowsOf(', 12 partitions', fetchRequest, 16, fetch(12)),
  ...rowsOf(', 12 partitions', fetchResponse, 16, fetched(12)),
  ...rowsOf('', heartbeatRequest, 4, heartbeat),
];

console.log(`${cpus()[0]?.model ?? 'unknown CPU'}, Node ${process.version}, best of ${ROUNDS}`);
for (const { message, compiledNs, interpretedNs } of rows) {
  const ratio = (interpretedNs / compiledNs).toFixed(1);
  console.log(`${message.padEnd(48)} ${compiledNs.toFixed(0).padStart(7)} ns  (${ratio}x)`);
}
