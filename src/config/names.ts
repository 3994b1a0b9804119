import { settingNames } from './broker-configs.ts';
import type { SettingName } from './settings.ts';
import { brokerSettingOf } from './topic-settings.ts';

/** The names of settings: in the environment, and what a wrong one was probably meant to be. */

export const environmentPrefix = 'KEYLANE_';

/** `num.partitions` is KEYLANE_NUM_PARTITIONS in the environment. */
export function environmentName(name: SettingName): string {
  return environmentPrefix + name.replaceAll('.', '_').toUpperCase();
}

/** Names that Kafka has for what is called differently here. */
const kafkaNames: Readonly<Record<string, SettingName>> = {
  ...brokerSettingOf,
  'advertised.listeners': 'advertise',
  'broker.id': 'node.id',
  listeners: 'listen',
  'log.dir': 'data',
  'log.dirs': 'data',
  'log.retention.hours': 'log.retention.ms',
  'log.retention.minutes': 'log.retention.ms',
};

/** The setting that was probably meant by an unknown name. */
export function settingMeantBy(name: string): SettingName | undefined {
  if (Object.hasOwn(kafkaNames, name)) return kafkaNames[name];
  return nearest(name.toLowerCase().replaceAll('_', '.'), settingNames);
}

/** The candidate that is only a few typing errors away, if there is one. */
export function nearest<T extends string>(text: string, candidates: readonly T[]): T | undefined {
  let best: T | undefined;
  let bestErrors = Math.max(2, Math.floor(text.length / 4)) + 1;
  for (const candidate of candidates) {
    const errors = typingErrors(text, candidate);
    if (errors >= bestErrors || errors >= candidate.length) continue;
    best = candidate;
    bestErrors = errors;
  }
  return best;
}

/**
 * Characters left out, added, exchanged, or swapped with their neighbour between two texts (the
 * optimal string alignment distance). Quadratic, so a long text is not looked at.
 */
export function typingErrors(a: string, b: string): number {
  if (Math.max(a.length, b.length) > 100) return Number.POSITIVE_INFINITY;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const exchanged = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(exchanged, last[j]! + 1, row[j - 1]! + 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}
