/**
 * zstd frames, by the wasm of @foxglove/wasm-zstd. Its own entry module starts to compile the wasm
 * when it is imported, and nothing can be called before that has ended; here it is compiled when it
 * is first used, in some 5 ms, which a broker that sees no zstd never pays.
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** What the wasm exports, and what its loader adds. */
interface Zstd {
  readonly HEAPU8: Uint8Array;
  /** 0 where there is no memory left. */
  _malloc(bytes: number): number;
  _free(pointer: number): void;
  _compressBound(bytes: number): number;
  /** Bytes of the result; -1 for an error. */
  _compress(to: number, toBytes: number, from: number, fromBytes: number, level: number): number;
  _decompress(to: number, toBytes: number, from: number, fromBytes: number): number;
}

interface LoaderOptions {
  instantiateWasm(imports: object, done: (instance: WasmInstance) => void): object;
}

interface WasmInstance {
  readonly exports: object;
}

/** Node has it, and its types do not. */
const { WebAssembly } = globalThis as unknown as {
  readonly WebAssembly: {
    readonly Module: new (bytes: Uint8Array) => object;
    readonly Instance: new (module: object, imports: object) => WasmInstance;
  };
};

/** Fills in the options object: they become the module. */
type Loader = (options: LoaderOptions) => unknown;

const levelDefault = 3;
let loaded: Zstd | undefined;

/** Throws if it fails. */
export function compressZstd(bytes: Uint8Array, level = levelDefault): Buffer {
  const zstd = load();
  const boundBytes = zstd._compressBound(bytes.length);
  return convert(zstd, bytes, boundBytes, (to, from) =>
    zstd._compress(to, boundBytes, from, bytes.length, level),
  );
}

/** Throws for malformed input, and for a result of more than `bytesMax`. */
export function decompressZstd(bytes: Uint8Array, bytesMax: number): Buffer {
  const zstd = load();
  return convert(zstd, bytes, bytesMax, (to, from) =>
    zstd._decompress(to, bytesMax, from, bytes.length),
  );
}

function convert(
  zstd: Zstd,
  bytes: Uint8Array,
  resultBytesMax: number,
  run: (to: number, from: number) => number,
): Buffer {
  const from = zstd._malloc(bytes.length);
  const to = zstd._malloc(resultBytesMax);
  try {
    if (from === 0 || to === 0) throw new Error('zstd: no memory left');
    // The view is another one after memory has grown.
    zstd.HEAPU8.set(bytes, from);
    const resultBytes = run(to, from);
    if (resultBytes < 0) throw new Error('zstd: failed');
    return Buffer.from(zstd.HEAPU8.subarray(to, to + resultBytes));
  } finally {
    zstd._free(from);
    zstd._free(to);
  }
}

function load(): Zstd {
  if (loaded !== undefined) return loaded;
  const require = createRequire(import.meta.url);
  const wasm = readFileSync(require.resolve('@foxglove/wasm-zstd/dist/wasm-zstd.wasm'));
  const start = require('@foxglove/wasm-zstd/dist/wasm-zstd.js') as Loader;
  const options: LoaderOptions = {
    instantiateWasm(imports, done) {
      const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm), imports);
      done(instance);
      return instance.exports;
    },
  };
  start(options);
  loaded = options as unknown as Zstd;
  return loaded;
}
