/** What loop-delay.mjs, preloaded into a broker, tells of the turns of its event loop. */
import type { ChildProcess } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { project } from './paths.ts';

interface Percentiles {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Milliseconds. */
export interface TurnsReport {
  /** For which the broker's thread was on a processor. */
  readonly turnsMs: Percentiles;
  /** With what else ran on the machine. */
  readonly loopDelayMs: Percentiles;
}

/** Environment of a broker that is to be asked; its standard error has to be a pipe. */
export const preloadsTurns = {
  NODE_OPTIONS: `--import=${pathToFileURL(project('bench/loop-delay.mjs'))}`,
};

/** Lets it write and forget what it has measured since the last time. */
export function turnsOf(child: ChildProcess): Promise<TurnsReport> {
  return new Promise((resolve, reject) => {
    let text = '';
    const end = (): void => {
      child.stderr!.off('data', gather);
      child.off('exit', fail);
    };
    const fail = (): void => {
      end();
      reject(new Error(`the broker ended: ${text}`));
    };
    const gather = (bytes: Buffer): void => {
      text += bytes.toString();
      const line = /^\{"turnsMs".*\}$/m.exec(text)?.[0];
      if (line === undefined) return;
      end();
      resolve(JSON.parse(line) as TurnsReport);
    };
    child.stderr!.on('data', gather);
    child.on('exit', fail);
    child.kill('SIGUSR2');
  });
}
