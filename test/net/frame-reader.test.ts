import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { FrameReader, frameBytesUnknown } from '../../src/net/frame-reader.ts';
import { framed } from './helpers.ts';

/** Reads all frames of the chunks, each lent from a buffer that is overwritten afterwards. */
function readAll(chunks: readonly Buffer[], reader = new FrameReader()): string[] {
  const frames: Buffer[] = [];
  for (const chunk of chunks) {
    const lent = Buffer.concat([Buffer.from('xxx'), chunk]).subarray(3);
    reader.feed(lent);
    for (;;) {
      if (reader.frameBytes === frameBytesUnknown) break;
      const frame = reader.next();
      if (frame === null) break;
      frames.push(frame);
    }
    lent.fill(0xee);
  }
  return frames.map((frame) => frame.toString('latin1'));
}

const two = Buffer.concat([framed(Buffer.from('first frame')), framed(Buffer.from('the second'))]);

test('two frames are found with the stream split at every point', () => {
  for (let at = 0; at <= two.length; at++) {
    const chunks = [two.subarray(0, at), two.subarray(at)].filter((chunk) => chunk.length > 0);
    assert.deepEqual(readAll(chunks), ['first frame', 'the second'], `split at ${at}`);
  }
});

test('two frames are found with the stream split at every two points', () => {
  for (let a = 1; a < two.length - 1; a++) {
    for (let b = a + 1; b < two.length; b++) {
      const chunks = [two.subarray(0, a), two.subarray(a, b), two.subarray(b)];
      assert.deepEqual(readAll(chunks), ['first frame', 'the second'], `split at ${a}, ${b}`);
    }
  }
});

test('two frames are found one byte at a time', () => {
  const bytes = [...two].map((byte) => Buffer.from([byte]));
  assert.deepEqual(readAll(bytes), ['first frame', 'the second']);
});

test('an empty frame is a frame, also at the end of a chunk', () => {
  const empty = Buffer.alloc(4);
  assert.deepEqual(readAll([Buffer.concat([empty, two, empty])]), [
    '',
    'first frame',
    'the second',
    '',
  ]);
  assert.deepEqual(readAll([empty.subarray(0, 3), empty.subarray(3), two]), [
    '',
    'first frame',
    'the second',
  ]);
});

test('any cut of random frames gives the same frames', () => {
  const random = seededRandom(7);
  for (let round = 0; round < 100; round++) {
    const bodies = Array.from({ length: 8 }, () => random.bytes(Math.floor(random.next() * 300)));
    const stream = Buffer.concat(bodies.map(framed));
    const chunks: Buffer[] = [];
    for (let at = 0; at < stream.length; ) {
      const end = Math.min(stream.length, at + 1 + Math.floor(random.next() * 200));
      chunks.push(stream.subarray(at, end));
      at = end;
    }
    const expected = bodies.map((body) => body.toString('latin1'));
    assert.deepEqual(readAll(chunks), expected, `round ${round}`);
  }
});

test('a frame of many chunks is put together while its memory grows', () => {
  const random = seededRandom(8);
  for (const bytes of [65_536, 70_000, 1_048_576, 1_048_577, 5_000_000]) {
    const body = random.bytes(bytes);
    const stream = framed(body);
    for (const step of [4096, 65_536, 131_072, 3_000_000]) {
      const reader = new FrameReader();
      let found: Buffer | null = null;
      for (let at = 0; at < stream.length; at += step) {
        reader.feed(Buffer.from(stream.subarray(at, at + step)));
        if (reader.frameBytes !== frameBytesUnknown) found = reader.next();
      }
      assert(found?.equals(body), `${bytes} bytes in chunks of ${step}`);
    }
  }
});

test('each frame has memory of its own size', () => {
  const reader = new FrameReader();
  reader.feed(Buffer.concat([framed(Buffer.alloc(20_000)), framed(Buffer.alloc(30_000))]));
  assert.equal(reader.next()?.buffer.byteLength, 20_000);
  assert.equal(reader.next()?.buffer.byteLength, 30_000);
});

test('a claimed size allocates no more than what has come allows', () => {
  const reader = new FrameReader();
  const before = process.memoryUsage().arrayBuffers;
  const start = Buffer.alloc(4 + 1000);
  start.writeInt32BE(2_000_000_000);
  reader.feed(start);
  assert.equal(reader.frameBytes, 2_000_000_000);
  assert.equal(reader.next(), null);
  assert(process.memoryUsage().arrayBuffers - before < 200_000);
  assert(reader.midFrame);
});

test('sizes are read as signed and judged by the caller', () => {
  const reader = new FrameReader();
  reader.feed(Buffer.from([0xff, 0xff]));
  assert.equal(reader.frameBytes, frameBytesUnknown);
  reader.feed(Buffer.from([0xff, 0xfe]));
  assert.equal(reader.frameBytes, -2);
});

test('a chunk is not lost when it is given back half used', () => {
  const reader = new FrameReader();
  const lent = Buffer.from(two);
  reader.feed(lent);
  assert.equal(reader.next()?.toString(), 'first frame');
  reader.keepRest();
  lent.fill(0);
  assert.equal(reader.next()?.toString(), 'the second');
  assert.equal(reader.frameBytes, frameBytesUnknown);
  assert.equal(reader.next(), null);
  assert(!reader.midFrame);
});
