import type { Load } from '../clients.ts';

/** Bytes of one load: some seconds on a small machine. */
const loadBytes = 500e6;
/** Small records are many: a load of them has fewer bytes. */
const recordsMax = 2_500_000;
/** Where batches are small, requests are many. */
const manyPartitions = 100;

export function loadOf(topic: string, recordBytes: number, partitions: number): Load {
  const whole = Math.min(recordsMax, Math.round(loadBytes / recordBytes));
  const records = partitions > manyPartitions ? Math.round(whole / 4) : whole;
  return { topic, partitions, recordBytes, records };
}

export function sizeName(bytes: number): string {
  return bytes < 1000 ? `${bytes} B` : `${bytes / 1000} kB`;
}

/** Record sizes and partitions of the throughput tables. */
export const shapes: readonly { readonly recordBytes: number; readonly partitions: number }[] = [
  { recordBytes: 1000, partitions: 12 },
  { recordBytes: 1000, partitions: 1 },
  { recordBytes: 1000, partitions: 1000 },
  { recordBytes: 10_000, partitions: 12 },
  { recordBytes: 10_000, partitions: 1 },
  { recordBytes: 10_000, partitions: 1000 },
  { recordBytes: 100, partitions: 12 },
  { recordBytes: 100, partitions: 1 },
  { recordBytes: 100, partitions: 1000 },
];

export function shapeName(shape: (typeof shapes)[number]): string {
  return `${sizeName(shape.recordBytes)} × ${shape.partitions}`;
}
