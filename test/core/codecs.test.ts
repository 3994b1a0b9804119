import assert from 'node:assert/strict';
import { test } from 'node:test';
import lz4 from 'lz4-napi';
import snappyjs from 'snappyjs';
import { codecs } from '../../src/core/codecs.ts';
import { type Codec, DecompressionError } from '../../src/core/compression.ts';
import { mendLz4HeaderChecksum } from '../../src/core/lz4-frame.ts';
import { seededRandom } from '../../src/core/random.ts';
import { xxhash32 } from '../../src/core/xxhash32.ts';

const names = ['gzip', 'snappy', 'lz4', 'zstd'] as const;
const random = seededRandom(20260101);
const mebibyte = 1024 * 1024;
const zstdOfPlain = '28b52ffd04587d0000406b65796c616e6520010035530b1758eefa12';

/** Text with repetitions near and far, so that every kind of copy is made. */
function text(bytes: number): Buffer {
  const words = ['key', 'lane', 'offset', 'partition', 'é✓', '{"id":', '},', ' ', '\n'];
  const pieces: string[] = [];
  for (let length = 0; length < bytes; length += 4) {
    const word = words[Math.floor(random.next() * words.length)]!;
    pieces.push(word, String(Math.floor(random.next() * 1000)));
  }
  return Buffer.from(pieces.join('')).subarray(0, bytes);
}

const samples = [0, 1, 2, 11, 59, 60, 61, 255, 256, 4096, 32767, 32768, 32769, 65536, 200_000]
  .flatMap((bytes) => [text(bytes), random.bytes(bytes), Buffer.alloc(bytes, 7)])
  .concat([Buffer.alloc(5 * mebibyte, 'abcdefgh')]);

function refusal(codec: Codec, bytes: Uint8Array, bytesMax: number): DecompressionError {
  try {
    codec.decompress(bytes, bytesMax);
  } catch (error) {
    assert.ok(error instanceof DecompressionError, String(error));
    return error;
  }
  return assert.fail('was not refused');
}

/** Damage may go unnoticed, but it must not bring anything else than these two ends. */
function readOrRefuse(codec: Codec, bytes: Uint8Array, bytesMax: number): void {
  try {
    assert.ok(codec.decompress(bytes, bytesMax).length <= bytesMax);
  } catch (error) {
    assert.ok(error instanceof DecompressionError, String(error));
  }
}

for (const name of names) {
  const codec = codecs[name];

  test(`${name} gives back what it was given`, () => {
    for (const plain of samples) {
      const packed = codec.compress(plain);
      assert.ok(codec.decompress(packed, plain.length).equals(plain), `${plain.length} bytes`);
    }
  });

  test(`${name} reads views with a byte offset, and plain Uint8Arrays`, () => {
    const plain = text(5000);
    const packed = codec.compress(new Uint8Array(plain));
    const shifted = new Uint8Array(packed.length + 20);
    shifted.set(packed, 13);
    const view = shifted.subarray(13, 13 + packed.length);
    assert.ok(codec.decompress(view, 5000).equals(plain));
    assert.ok(codec.decompress(Buffer.from(shifted.buffer, 13, packed.length), 5000).equals(plain));
  });

  test(`${name} refuses what grows beyond the bound by one byte`, () => {
    for (const plain of samples) {
      if (plain.length === 0) continue;
      assert.equal(refusal(codec, codec.compress(plain), plain.length - 1).tooLarge, true);
    }
    assert.equal(refusal(codec, codec.compress(Buffer.from('x')), 0).tooLarge, true);
  });

  test(`${name} refuses input that is cut short anywhere`, () => {
    const packed = codec.compress(text(3000));
    for (let bytes = 0; bytes < packed.length; bytes++) {
      // A xerial stream may end after any chunk, so the bare header is an empty stream.
      if (name === 'snappy' && bytes === 16) continue;
      refusal(codec, packed.subarray(0, bytes), 1 << 20);
    }
  });

  test(`${name} answers damaged input with nothing but its own error`, () => {
    const bytesMax = 100_000;
    for (let round = 0; round < 3000; round++) {
      const packed = Buffer.from(codec.compress(text(Math.floor(random.next() * 400))));
      const changes = 1 + Math.floor(random.next() * 4);
      for (let change = 0; change < changes; change++) {
        const at = Math.floor(random.next() * packed.length);
        packed[at] = Math.floor(random.next() * 256);
      }
      readOrRefuse(codec, packed, bytesMax);
    }
    for (let round = 0; round < 2000; round++) {
      readOrRefuse(codec, random.bytes(Math.floor(random.next() * 60)), bytesMax);
    }
    // Nothing of all this is left behind in the codec.
    const plain = text(1000);
    assert.ok(codec.decompress(codec.compress(plain), 1000).equals(plain));
  });
}

test('levels are honoured by gzip and zstd', () => {
  const plain = text(200_000);
  for (const [codec, low, high] of [
    [codecs.gzip, 1, 9],
    [codecs.zstd, 1, 19],
  ] as const) {
    const packed = codec.compress(plain, high);
    assert.ok(packed.length < codec.compress(plain, low).length);
    assert.ok(codec.decompress(packed, plain.length).equals(plain));
  }
});

/** What each bomb takes of memory: far less than the gibibyte that it would become. */
function assertDefused(codec: Codec, bomb: Buffer): void {
  const before = process.memoryUsage();
  for (const bytesMax of [mebibyte, 16 * mebibyte]) {
    assert.equal(refusal(codec, bomb, bytesMax).tooLarge, true);
  }
  const after = process.memoryUsage();
  const grown = after.rss - before.rss;
  assert.ok(grown < 96 * mebibyte, `grew by ${grown} bytes`);
}

test('bombs: gzip of a gibibyte of zeros', () => {
  // A member of 16 MiB, 64 times over: members one after another are one stream.
  const member = codecs.gzip.compress(Buffer.alloc(16 * mebibyte), 9);
  assertDefused(codecs.gzip, Buffer.concat(new Array<Buffer>(64).fill(member)));
});

test('bombs: snappy that states a gibibyte, and snappy that makes many mebibytes', () => {
  const raw = Buffer.from([0x80, 0x80, 0x80, 0x80, 0x04, 0x00, 0x61, 0xfe, 0x01, 0x00]);
  assertDefused(codecs.snappy, raw);
  const stream = codecs.snappy.compress(Buffer.alloc(32 * mebibyte));
  assertDefused(codecs.snappy, stream);
  // Below the bound a stated length that no input of this size can reach is malformed.
  assert.equal(refusal(codecs.snappy, raw, 2 ** 31).tooLarge, false);
});

test('bombs: lz4 blocks of four mebibytes, and a content size of a gibibyte', () => {
  const descriptor = [0x60, 0x70];
  const block = lz4.compressSync(Buffer.alloc(4 * mebibyte));
  block.writeUInt32LE(block.length - 4);
  assertDefused(codecs.lz4, frame(descriptor, [...new Array<Buffer>(256).fill(block)]));
  const stated = frame([0x68, 0x40, 0, 0, 0, 0x40, 0, 0, 0, 0], []);
  assertDefused(codecs.lz4, stated);
});

test('bombs: a gibibyte of zstd blocks of one repeated byte', () => {
  const header = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58]);
  const block = Buffer.from([0x02, 0x00, 0x10, 0x41]);
  const blocks = Buffer.concat(new Array<Buffer>(8192).fill(block));
  const last = Buffer.from([0x03, 0x00, 0x10, 0x41]);
  assertDefused(codecs.zstd, Buffer.concat([header, blocks, last]));
  // One frame that states a gibibyte, and is not even begun.
  const stated = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 0x01, 0, 0]);
  refusal(codecs.zstd, stated, mebibyte);
});

test('snappy: a length that makes snappyjs run in circles is refused', () => {
  const raw = Buffer.from([0x20, 0xfc, 0xf0, 0xff, 0xff, 0xff, 0x61, 0x62, 0x63]);
  assert.equal(refusal(codecs.snappy, raw, 1000).tooLarge, false);
});

test('snappy: raw blocks, blocks of another writer, and streams put together', () => {
  const plain = text(70_000);
  assert.ok(codecs.snappy.decompress(snappyjs.compress(plain), plain.length).equals(plain));
  const twice = Buffer.concat([codecs.snappy.compress(plain), codecs.snappy.compress(plain)]);
  const result = codecs.snappy.decompress(twice, 2 * plain.length);
  assert.ok(result.equals(Buffer.concat([plain, plain])));
  // Literal lengths of one to four bytes; copies with one, two and four bytes of distance.
  const literals = Buffer.concat([
    Buffer.from([0x1b]),
    Buffer.from([0xf0, 0x03]),
    Buffer.from('abcd'),
    Buffer.from([0xf4, 0x01, 0x00]),
    Buffer.from('ef'),
    Buffer.from([0xf8, 0x00, 0x00, 0x00, 0x67]),
    Buffer.from([0xfc, 0x00, 0x00, 0x00, 0x00, 0x68]),
    Buffer.from([0x01, 0x08]),
    Buffer.from([0x1e, 0x02, 0x00]),
    Buffer.from([0x1f, 0x01, 0x00, 0x00, 0x00]),
  ]);
  literals[0] = 8 + 4 + 8 + 8;
  const expected = 'abcdefghabcdcdcdcdcddddddddd';
  assert.equal(codecs.snappy.decompress(literals, 100).toString(), expected);
});

/** A frame from its descriptor and its blocks, with the header checksum that belongs to it. */
function frame(descriptor: number[], parts: Buffer[], tail: Buffer = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.from([...descriptor, 0]);
  bytes[bytes.length - 1] = (xxhash32(bytes, 0, descriptor.length) >>> 8) & 0xff;
  const magic = Buffer.from([0x04, 0x22, 0x4d, 0x18]);
  return Buffer.concat([magic, bytes, ...parts, Buffer.alloc(4), tail]);
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}

test('lz4: linked blocks, checksums of blocks and content, and the content size', () => {
  const plain = text(150_000);
  const parts: Buffer[] = [];
  for (let at = 0; at < plain.length; at += 20_000) {
    const history = plain.subarray(Math.max(0, at - 65_536), at);
    const piece = plain.subarray(at, at + 20_000);
    const block = lz4.compressSync(piece, at === 0 ? null : history);
    block.writeUInt32LE(block.length - 4);
    parts.push(block, word(xxhash32(block, 4)));
  }
  const size = Buffer.alloc(8);
  size.writeUInt32LE(plain.length);
  const checksum = word(xxhash32(plain));
  const good = frame([0x5c, 0x40, ...size], parts, checksum);
  assert.ok(codecs.lz4.decompress(good, plain.length).equals(plain));
  for (const at of [4, 5, 6, 13, 14, good.length - 1, good.length - 6, good.length - 200]) {
    const bad = Buffer.from(good);
    bad[at]! ^= 0x10;
    refusal(codecs.lz4, bad, plain.length);
  }
  const longer = Buffer.concat([good, Buffer.alloc(1)]);
  assert.match(refusal(codecs.lz4, longer, plain.length).message, /after the end/);
});

test('lz4: stored blocks, and headers that say what cannot be read', () => {
  const stored = frame([0x60, 0x40], [word(0x80000003), Buffer.from('abc')]);
  assert.equal(codecs.lz4.decompress(stored, 3).toString(), 'abc');
  const refused: [number[], RegExp][] = [
    [[0x20, 0x40], /version/],
    [[0x62, 0x40], /malformed header/],
    [[0x60, 0x30], /malformed header/],
    [[0x60, 0xc0], /malformed header/],
    [[0x61, 0x40, 1, 2, 3, 4], /dictionary/],
    [[0x68, 0x40, 4, 0, 0, 0, 0, 0, 0, 0], /content size/],
  ];
  for (const [descriptor, reason] of refused) {
    const bytes = frame(descriptor, [word(0x80000003), Buffer.from('abc')]);
    assert.match(refusal(codecs.lz4, bytes, 1000).message, reason);
  }
});

test('lz4: a header checksum over the magic too is mended', () => {
  const plain = text(300);
  const broken = codecs.lz4.compress(plain);
  broken[6] = (xxhash32(broken, 0, 6) >>> 8) & 0xff;
  assert.match(refusal(codecs.lz4, broken, 1000).message, /header checksum/);
  assert.ok(codecs.lz4.decompress(mendLz4HeaderChecksum(broken), 1000).equals(plain));
});

test('xxHash32 gives the values of its specification', () => {
  assert.equal(xxhash32(Buffer.from('')), 0x02cc5d05);
  assert.equal(xxhash32(Buffer.from('a')), 0x550d7456);
  assert.equal(xxhash32(Buffer.from('abc')), 0x32d153ff);
  assert.equal(xxhash32(Buffer.from('Nobody inspects the spammish repetition')), 0xe2293b2f);
});

test('zstd: frames without a content size, with a checksum, skipped ones, and several', () => {
  const plain = 'keylane '.repeat(40);
  // Written by the zstd command, from a pipe (no content size) and with a checksum.
  const piped = Buffer.from(zstdOfPlain, 'hex');
  const skipped = Buffer.from('582a4d1803000000aabbcc', 'hex');
  const several = Buffer.concat([piped, skipped, codecs.zstd.compress(Buffer.from(plain))]);
  assert.equal(codecs.zstd.decompress(piped, 1000).toString(), plain);
  assert.equal(codecs.zstd.decompress(several, 1000).toString(), plain + plain);
  assert.equal(refusal(codecs.zstd, several, 2 * plain.length - 1).tooLarge, true);
  const bad = Buffer.from(piped);
  bad[bad.length - 1]! ^= 1;
  assert.equal(refusal(codecs.zstd, bad, 1 << 20).tooLarge, false);
});
