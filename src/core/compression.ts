/** Compression as a port: protocol code names the codec, the platform does the work. */

/** The codec ids of record batch attributes, bits 0 to 2. */
export const Compression = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const;
export type CompressionId = (typeof Compression)[keyof typeof Compression];

/** What one codec does. Both calls are synchronous and allocate their result. */
export interface Codec {
  compress(bytes: Uint8Array, level?: number): Buffer;
  /**
   * Throws `DecompressionError` on malformed input and, before allocating for it, when the
   * result would be longer than `bytesMax` (decompression bombs).
   */
  decompress(bytes: Uint8Array, bytesMax: number): Buffer;
}

export class DecompressionError extends Error {
  override name = 'DecompressionError';
  /** True where the input may be sound but would grow beyond the given bound. */
  readonly tooLarge: boolean;

  constructor(message: string, tooLarge = false, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.tooLarge = tooLarge;
  }
}

/** One codec per compression type but `none`. */
export type Codecs = Readonly<Record<Exclude<keyof typeof Compression, 'none'>, Codec>>;
