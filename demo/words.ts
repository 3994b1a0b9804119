import type { Summary } from './figures.ts';
import type { RoundName } from './plan.ts';

/** Figures as people read them, and the two lines in which the demo ends. */

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

export function count(value: number): string {
  return value.toLocaleString('en-US');
}

export function conclusion(name: RoundName, summary: Summary): string {
  const start = `${name} delivery:`.padEnd(16);
  if (summary.behindSlow === 0) {
    return `${start}none waited behind the slow one; the longest wait was ${seconds(summary.waitMsMax)}`;
  }
  const records = `${count(summary.behindSlow)} quick record${summary.behindSlow === 1 ? '' : 's'}`;
  return `${start}${records} waited behind the slow one, up to ${seconds(summary.behindSlowMsMax)}`;
}
