/**
 * Preloaded into a broker with NODE_OPTIONS=--import: measures the turns of its event loop, with a
 * resolution of 1 ms. SIGUSR2 writes what was measured since the last time as one line of JSON to
 * standard error; so does the exit.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const resolutionMs = 1;
const delays = monitorEventLoopDelay({ resolution: resolutionMs });
delays.enable();

function report() {
  const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - resolutionMs);
  const line = {
    loopDelayMs: {
      p50: ms(delays.percentile(50)),
      p99: ms(delays.percentile(99)),
      p999: ms(delays.percentile(99.9)),
      max: ms(delays.max),
    },
  };
  delays.reset();
  process.stderr.write(`${JSON.stringify(line)}\n`);
}

process.on('SIGUSR2', report);
process.on('exit', report);
