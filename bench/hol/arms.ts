import type { Arm } from '../broker-process.ts';
import type { Workload } from './workloads.ts';

/** The topic of all runs; the broker and its data are new for each. */
export const topic = 'hol';

export type ArmName =
  | 'kafka'
  | 'kafka-4c'
  | 'log'
  | 'log-4c'
  /** Keyed delivery; a commit finishes records, as by default. */
  | 'keyed'
  /** Keyed delivery; the next poll finishes records. */
  | 'keyed-poll';

export interface HolArm extends Arm {
  readonly about: string;
  /** Partitions for each one of the workload's. */
  readonly partitionsFactor: 1 | 4;
}

/**
 * So that the consumers, which all start at once, are in one round of the group. It is Kafka's own
 * setting, and has no effect once they are there.
 */
const groupDelay = 'group.initial.rebalance.delay.ms=1000';

export const arms: Readonly<Record<ArmName, HolArm>> = {
  kafka: kafka('Apache Kafka, P = C', 1),
  'kafka-4c': kafka('Apache Kafka, P = 4C', 4),
  log: keylane('Keylane, log delivery, P = C', 1),
  'log-4c': keylane('Keylane, log delivery, P = 4C', 4),
  keyed: keylane('Keylane, keyed delivery', 1, ['--keyed', topic]),
  'keyed-poll': keylane('Keylane, keyed delivery, --keyed-ack poll', 1, [
    ...['--keyed', topic],
    ...['--keyed-ack', 'poll'],
  ]),
};

export const armNames = Object.keys(arms) as ArmName[];

export function isKeyed(arm: ArmName): boolean {
  return arm === 'keyed' || arm === 'keyed-poll';
}

/** One for each consumer, in keyed delivery, which needs no more; the workload's otherwise. */
export function partitionsOf(arm: ArmName, { consumers, partitions }: Workload): number {
  return isKeyed(arm) ? consumers : partitions * arms[arm].partitionsFactor;
}

function kafka(about: string, partitionsFactor: 1 | 4): HolArm {
  return { name: about, broker: 'kafka', about, partitionsFactor, properties: [groupDelay] };
}

function keylane(about: string, partitionsFactor: 1 | 4, flags: readonly string[] = []): HolArm {
  return { name: about, broker: 'keylane', about, partitionsFactor, flags, settings: [groupDelay] };
}
