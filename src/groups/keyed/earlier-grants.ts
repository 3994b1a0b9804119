import type { LaneRange } from './lane-range.ts';

interface Earlier {
  readonly offset: number;
  readonly count: number;
  readonly n: number;
  readonly range: LaneRange;
}

/**
 * Grants from before a restart, whose records are not loaded yet: by stored offset, so that the
 * feed's records find the range and lane number that they were granted as.
 */
export class EarlierGrants {
  readonly #byPartition = new Map<number, Earlier[]>();

  get isEmpty(): boolean {
    return this.#byPartition.size === 0;
  }

  add(range: LaneRange): void {
    range.grants.forEach(range.start, range.end, (n, count, partition, offset) => {
      const grants = this.#byPartition.get(partition) ?? [];
      this.#byPartition.set(partition, grants);
      const at = firstAbove(grants, offset);
      grants.splice(at, 0, { offset, count, n, range });
    });
  }

  /** Undefined if there is none, or it was given back or finished meanwhile. */
  find(partition: number, offset: number): { range: LaneRange; n: number } | undefined {
    const grants = this.#byPartition.get(partition);
    const found = grants?.[firstAbove(grants, offset) - 1];
    if (found === undefined || offset >= found.offset + found.count) return undefined;
    const n = found.n + (offset - found.offset);
    return found.range.countIn(n, n + 1) === 1 ? { range: found.range, n } : undefined;
  }
}

function firstAbove(grants: readonly Earlier[], offset: number): number {
  let low = 0;
  let high = grants.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (grants[middle]!.offset <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
