import type { Clock } from '../core/clock.ts';
import type { FilePort, JournalFile } from './file-port.ts';

/**
 * Files whose syncs take `delayMs` longer, as on cloud disks: to measure what a slow disk does to
 * throughput and latency (`journal.sync.delay.ms`).
 */
export function withSlowSyncs(files: FilePort, clock: Clock, delayMs: number): FilePort {
  return {
    ...files,
    async open(path, mode) {
      const file = await files.open(path, mode);
      return { ...file, sync: () => syncSlowly(file, clock, delayMs) };
    },
  };
}

async function syncSlowly(file: JournalFile, clock: Clock, delayMs: number): Promise<void> {
  await new Promise<void>((resolve) => clock.after(delayMs, resolve));
  await file.sync();
}
