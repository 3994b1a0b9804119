/**
 * Preloaded into a broker with NODE_OPTIONS=--import: measures the turns of its event loop. A timer
 * looks every 2 ms how late it is, and how long the thread was on a processor meanwhile. On a busy
 * machine a turn is late because other processes ran; the lower one of the two is what the broker
 * itself is to blame for. SIGUSR2 writes what was measured since the last time as one line of JSON
 * to standard error; so does the exit.
 */
import { openSync, readSync } from 'node:fs';
import { createHistogram } from 'node:perf_hooks';

const intervalMs = 2;
const delays = createHistogram();
const turns = createHistogram();
const schedstat = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
const text = Buffer.alloc(128);
let wallBefore = performance.now();
let onCpuBefore = onCpuMs();

/** The first field: nanoseconds that the thread has run. */
function onCpuMs() {
  const bytes = readSync(schedstat, text, 0, text.length, 0);
  return Number.parseInt(text.latin1Slice(0, bytes), 10) / 1e6;
}

function look() {
  const wall = performance.now();
  const onCpu = onCpuMs();
  const lateMs = Math.max(0, wall - wallBefore - intervalMs);
  delays.record(microseconds(lateMs));
  turns.record(microseconds(Math.min(lateMs, onCpu - onCpuBefore)));
  wallBefore = wall;
  onCpuBefore = onCpu;
}

/** Histograms count from 1. */
function microseconds(ms) {
  return 1 + Math.round(ms * 1000);
}

function report() {
  const line = { turnsMs: percentiles(turns), loopDelayMs: percentiles(delays) };
  turns.reset();
  delays.reset();
  process.stderr.write(`${JSON.stringify(line)}\n`);
}

function percentiles(histogram) {
  const ms = (value) => value / 1000;
  return {
    p50: ms(histogram.percentile(50)),
    p99: ms(histogram.percentile(99)),
    p999: ms(histogram.percentile(99.9)),
    max: ms(histogram.max),
  };
}

setInterval(look, intervalMs).unref();
process.on('SIGUSR2', report);
process.on('exit', report);
