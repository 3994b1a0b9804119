import { randomFillSync } from 'node:crypto';

/** Randomness as a port, so that one seed gives one run in tests. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Fresh random bytes. */
  bytes(count: number): Buffer;
}

export const systemRandom: Random = {
  next: Math.random,
  bytes: (count) => randomFillSync(Buffer.alloc(count)),
};

/** A small seeded generator (mulberry32): same seed, same sequence. For tests and simulation. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return {
    next,
    bytes(count) {
      const bytes = Buffer.alloc(count);
      for (let i = 0; i < count; i++) bytes[i] = Math.floor(next() * 256);
      return bytes;
    },
  };
}
