/**
 * The codecs of record batches on Node. Each result is bounded before it is made, and malformed
 * input brings nothing but a `DecompressionError`.
 */

import { constants, gunzipSync, gzipSync } from 'node:zlib';
import { asBuffer } from './as-buffer.ts';
import { type Codec, type Codecs, DecompressionError } from './compression.ts';
import { compressLz4, decompressLz4 } from './lz4-frame.ts';
import { compressSnappy, decompressSnappy } from './snappy-xerial.ts';
import { compressZstd, decompressZstd } from './zstd.ts';
import { zstdBound } from './zstd-bound.ts';

/** The wasm memory ends at 2 GiB; what is asked of it at once stays well below. */
const zstdBytesMax = 512 * 1024 * 1024;

const gzip: Codec = {
  compress: (bytes, level = constants.Z_DEFAULT_COMPRESSION) => gzipSync(bytes, { level }),
  decompress(bytes, bytesMax) {
    try {
      // A bound of zero is not allowed there, so an empty result is allowed one byte too many.
      const result = gunzipSync(bytes, { maxOutputLength: Math.max(1, bytesMax) });
      if (result.length > bytesMax) throw tooLarge('gzip', bytesMax);
      return result;
    } catch (error) {
      if (error instanceof DecompressionError) throw error;
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
        throw tooLarge('gzip', bytesMax, error);
      }
      throw new DecompressionError('gzip: malformed input', false, error);
    }
  },
};

/** snappy and LZ4 (as its package has it) know no levels. */
const snappy: Codec = { compress: compressSnappy, decompress: decompressSnappy };
const lz4: Codec = { compress: compressLz4, decompress: decompressLz4 };

const zstd: Codec = {
  compress: compressZstd,
  decompress(bytes, bytesMax) {
    const bound = zstdBound(asBuffer(bytes));
    const allowed = Math.min(bytesMax, zstdBytesMax);
    try {
      return decompressZstd(bytes, Math.min(bound, allowed));
    } catch (error) {
      // The decoder does not say whether the result did not fit or the input is malformed.
      if (bound > allowed) throw tooLarge('zstd', bytesMax, error);
      throw new DecompressionError('zstd: malformed input', false, error);
    }
  },
};

export const codecs: Codecs = { gzip, snappy, lz4, zstd };

function tooLarge(codec: string, bytesMax: number, cause?: unknown): DecompressionError {
  return new DecompressionError(`${codec}: more than ${bytesMax} bytes`, true, cause);
}
