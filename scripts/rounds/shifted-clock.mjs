/** Loaded before a broker: its wall clock is off by what a file says, in ms, and follows changes. */
import { readFileSync } from 'node:fs';

const path = process.env.SHIFTED_CLOCK_FILE;
const now = Date.now;
let shiftMs = 0;

function look() {
  try {
    shiftMs = Number(readFileSync(path, 'utf8')) || 0;
  } catch {
    shiftMs = 0;
  }
}

look();
setInterval(look, 50).unref();
Date.now = () => now() + shiftMs;
