/**
 * How fast record batches are checked and opened: `node dist/bench/micro/records.js`. Payloads are
 * JSON lines, which compress about as well as what producers send.
 */

import { codecs } from '../../src/core/codecs.ts';
import { Compression, type CompressionId } from '../../src/core/compression.ts';
import { seededRandom } from '../../src/core/random.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { RecordCursor } from '../../src/protocol/records/cursor.ts';
import { type ProduceRules, validateProduce } from '../../src/protocol/records/validate.ts';

const batchBytes = 16 * 1024;
const measureMs = 700;
const random = seededRandom(1);

const rules: ProduceRules = {
  version: 13,
  topicPartition: 'bench-0',
  messageBytesMax: 1_048_588,
  openedBytesMax: 64 * 1024 * 1024,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: 2 ** 63,
  timestampAfterMaxMs: 3_600_000,
  compacted: false,
  nowMs: 1_700_000_000_000,
};

function json(bytes: number): Buffer {
  const lines: string[] = [];
  for (let length = 0; length < bytes; ) {
    const line = JSON.stringify({
      id: Math.floor(random.next() * 1e9),
      user: `user-${Math.floor(random.next() * 5000)}`,
      event: ['click', 'view', 'purchase', 'login'][Math.floor(random.next() * 4)],
      amount: (random.next() * 1000).toFixed(2),
    });
    lines.push(line);
    length += line.length;
  }
  return Buffer.from(lines.join('')).subarray(0, bytes);
}

function batchOf(recordBytes: number, compression: CompressionId): Buffer {
  const records = Array.from({ length: Math.floor(batchBytes / recordBytes) }, (_, index) => ({
    key: Buffer.from(`key-${index}`),
    value: json(recordBytes - 16),
    timestamp: rules.nowMs - 1000 + index,
  }));
  return buildBatch({ records, compression }, codecs);
}

/** Prints what `run`, which handles `bytes` each time, does in a second. */
function measure(name: string, bytes: number, run: () => unknown): void {
  for (let warm = 0; warm < 2000; warm++) run();
  const start = performance.now();
  let runs = 0;
  while (performance.now() - start < measureMs) {
    for (let inner = 0; inner < 50; inner++) run();
    runs += 50;
  }
  const seconds = (performance.now() - start) / 1000;
  const rate = ((runs * bytes) / seconds / 1e6).toFixed(0);
  const each = ((seconds / runs) * 1e6).toFixed(2);
  process.stdout.write(`${name.padEnd(44)} ${rate.padStart(6)} MB/s ${each.padStart(9)} us\n`);
}

function validation(recordBytes: number): void {
  const plain = batchOf(recordBytes, Compression.none);
  const cursor = new RecordCursor();
  measure(`walk, ${recordBytes} B records`, plain.length, () => {
    cursor.reset(plain, 0, null);
    while (cursor.next());
  });
  for (const [name, id] of Object.entries(Compression)) {
    const batch = batchOf(recordBytes, id);
    const verdict = validateProduce(batch, rules, codecs);
    if (!verdict.ok) throw new Error(verdict.message);
    const title = `validate, ${recordBytes} B records, ${name} (${batch.length} B)`;
    measure(title, plain.length, () => validateProduce(batch, rules, codecs));
  }
}

function decompression(bytes: number): void {
  const plain = json(bytes);
  for (const [name, codec] of Object.entries(codecs)) {
    const packed = codec.compress(plain);
    measure(`decompress ${bytes} B, ${name} (${packed.length} B)`, bytes, () =>
      codec.decompress(packed, bytes),
    );
    measure(`compress ${bytes} B, ${name}`, bytes, () => codec.compress(plain));
  }
}

process.stdout.write(`node ${process.version}; rates are of uncompressed bytes\n`);
validation(100);
validation(1000);
decompression(batchBytes);
decompression(256 * 1024);
