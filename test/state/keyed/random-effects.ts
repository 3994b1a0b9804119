import type { Random } from '../../../src/core/random.ts';
import type { KeyedEffect, Trial } from '../../../src/state/keyed/effects.ts';
import type { Ledger } from '../../../src/state/keyed/ledger.ts';

const lanes = 4;
const offsets = 400;

/** Effects on a ledger, mostly such as a leader plans them, and some that have nothing to do. */
export class RandomEffects {
  readonly #random: Random;
  readonly #partitions: readonly number[];

  constructor(random: Random, partitions: readonly number[]) {
    this.#random = random;
    this.#partitions = partitions;
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }

  #partition(): number {
    return this.#partitions[this.#below(this.#partitions.length)]!;
  }

  opened(slot: number, laneBase: number): KeyedEffect & { kind: 'opened' } {
    const known = this.#partitions.slice(this.#below(2));
    const starts = known.map((partition) => [partition, this.#below(10)] as const);
    return { kind: 'opened', slot, laneBase, starts };
  }

  next(ledger: Ledger): KeyedEffect {
    const lane = this.#below(lanes);
    const partition = this.#partition();
    const dice = this.#below(100);
    if (dice < 10) return { kind: 'rangeOpened', lane, memberId: `member-${this.#below(3)}` };
    if (dice < 15) return { kind: 'rangeClosed', lane };
    if (dice < 50) return { kind: 'granted', lane, runs: this.#runs() };
    if (dice < 70) return { kind: 'finished', lane, ...this.#laneNumbers(ledger, lane) };
    if (dice < 80) return { kind: 'returned', lane, ...this.#laneNumbers(ledger, lane) };
    if (dice < 85) {
      const from = this.#below(3) === 0 ? 0 : this.#below(offsets);
      return { kind: 'skipped', partition, from, to: from + this.#below(30) };
    }
    if (dice < 98) {
      const trial = this.#below(4) === 0 ? null : this.#trial();
      return { kind: 'tried', partition, offset: this.#below(offsets), trial };
    }
    return { kind: 'reset', partition, offset: this.#below(offsets) };
  }

  #runs(): number[] {
    const runs: number[] = [];
    for (let left = 1 + this.#below(3); left > 0; left--) {
      runs.push(1 + this.#below(6), this.#partition(), this.#below(offsets));
    }
    return runs;
  }

  #laneNumbers(ledger: Ledger, index: number) {
    const lane = ledger.lane(index);
    const low = lane?.ranges[0]?.start ?? ledger.laneBase;
    const span = (lane?.end ?? low) - low + 3;
    const from = this.#below(3) === 0 ? low : low + this.#below(span);
    return { from, to: from + this.#below(span) };
  }

  #trial(): Trial {
    return {
      quarters: this.#below(20),
      limit: this.#below(64),
      firstMs: this.#below(1e9),
      lastMs: this.#below(1e9),
      dueMs: this.#below(1e9),
      reason: 'lease',
    };
  }
}
