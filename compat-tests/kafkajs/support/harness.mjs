/**
 * A small test harness for suites that wait for a broker most of the time.
 *
 * Checks run a few at a time (JOBS, default 4), each with a time limit and its own stack of things
 * to close. The last line that `runChecks` prints is `N passed, N failed`.
 */
import { setTimeout as delay } from 'node:timers/promises';

const checkMsMax = 60_000;
const closeMsMax = 10_000;
const pollMs = 20;

const checks = [];

/**
 * Registers a check. `fast` marks the ones that FAST=1 keeps; `slow` the ones that last several
 * seconds by nature (session timeouts), which are started first; `msMax` is for the few that need
 * more than a minute.
 */
export function check(name, { fast = false, slow = false, msMax = checkMsMax }, body) {
  if (checks.some((other) => other.name === name)) throw new Error(`two checks named "${name}"`);
  checks.push({ name, fast, slow, msMax, body });
}

/** Resolves with the first truthy value of `condition`, which may be asynchronous. */
export async function until(what, condition, { timeoutMs = 15_000 } = {}) {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`timed out waiting until ${what}`);
    await delay(pollMs);
  }
}

/** Resolves or rejects as `promise` does, or rejects after `timeoutMs`. */
export async function within(what, timeoutMs, promise) {
  const abort = new AbortController();
  const overdue = delay(timeoutMs, null, { signal: abort.signal }).then(
    () => {
      throw new Error(`${what}: not done within ${timeoutMs} ms`);
    },
    () => {},
  );
  try {
    return await Promise.race([promise, overdue]);
  } finally {
    abort.abort();
  }
}

/** A promise with its two ends, for handlers that a check holds and lets go. */
export function latch() {
  const ends = {};
  ends.opened = new Promise((resolve, reject) => {
    ends.open = resolve;
    ends.fail = reject;
  });
  return ends;
}

/** Closes in reverse order; a close that fails or hangs is a fault of the check too. */
async function closeAll(closers) {
  const faults = [];
  for (const { what, close } of closers.reverse()) {
    try {
      await within(`close ${what}`, closeMsMax, close());
    } catch (error) {
      faults.push(error);
    }
  }
  return faults;
}

function indented(fault) {
  return String(fault?.stack ?? fault).replace(/^/gm, '    ');
}

async function runOne({ name, msMax, body }, makeContext) {
  const closers = [];
  const faults = [];
  const onClose = (what, close) => closers.push({ what, close });
  const startedMs = performance.now();
  try {
    await within(name, msMax, makeContext(onClose).then(body));
  } catch (error) {
    faults.push(error);
  }
  faults.push(...(await closeAll(closers)));
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(`${faults.length === 0 ? 'ok' : 'not ok'} ${name} (${seconds} s)`);
  for (const fault of faults) console.log(indented(fault));
  return faults.length === 0;
}

/** Runs what FAST and ONLY (part of a name) select; returns the number of failed checks. */
export async function runChecks(makeContext) {
  const { FAST, ONLY, JOBS } = process.env;
  const isSelected = ({ name, fast }) => (ONLY ? name.includes(ONLY) : FAST !== '1' || fast);
  const selected = checks.filter(isSelected);
  const queue = [...selected.filter((c) => c.slow), ...selected.filter((c) => !c.slow)];
  let failed = 0;
  // Clients throw from timers and sockets too; nobody knows for which check, but it is a fault.
  process.on('uncaughtException', (error) => {
    failed++;
    console.log(`not ok: an error that belongs to no check\n${indented(error)}`);
  });
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      if (!(await runOne(next, makeContext))) failed++;
    }
  };
  await Promise.all(Array.from({ length: Number(JOBS ?? 4) }, work));
  console.log(`${Math.max(0, selected.length - failed)} passed, ${failed} failed`);
  return failed;
}
