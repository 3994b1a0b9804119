/** All runs of the benchmark, as data, and what each is to reach. */
import type { ArmName } from '../hol/arms.ts';
import { type ClientName, clientNames } from '../hol/programs.ts';

export type DrainArm = Extract<ArmName, 'log' | 'keyed' | 'keyed-poll'>;

export const drainArms: readonly DrainArm[] = ['log', 'keyed', 'keyed-poll'];

/** One run: what its handlers take of a backlog, or what a group costs that has nothing to do. */
export interface Piece {
  readonly client: ClientName;
  readonly arm: DrainArm;
  readonly load: Load;
}

export interface DrainLoad {
  readonly kind: 'drain';
  readonly serviceMs: number;
  readonly recordBytes: number;
}

export type Load = DrainLoad | { readonly kind: 'idle' };

const serviceTimesMs: readonly number[] = [0, 1, 10, 100];
const largeBytes = 1000;
export const smallBytes = 100;

/** Consumers of one partition each; a keyed topic has a lane for each. */
export function consumersOf(load: Load): number {
  // Where nothing is to be waited for, more consumers would only show that the machine is full.
  return load.kind === 'drain' && load.serviceMs === 0 ? 1 : 8;
}

export const keyCount = 10_000;

/** Enough for the time that is measured, as far as the disk allows. */
export function backlogOf({ load, client }: Piece): number {
  if (load.kind === 'idle') return 0;
  const { serviceMs, recordBytes } = load;
  if (serviceMs === 0) return recordBytes === largeBytes ? 2_000_000 : 8_000_000;
  const perSecond = (consumersOf(load) * 1000) / serviceMs;
  const spareMs = 5000;
  return Math.ceil((perSecond * (measuredMs(client) + spareMs)) / 1000);
}

/** From the start of the clock. */
export function measuredMs(client: ClientName): number {
  return settledMs(client) + 10_000;
}

/**
 * When a client is to have reached its rate. The late ones prove nothing by fetching, because they
 * do so in the background: what they have handled is known once they commit it, and the broker
 * learns only by that how much they can have in hand.
 */
export function settledMs(client: ClientName): number {
  return client === 'librdkafka' || client === 'sarama' ? 20_000 : 3000;
}

export interface Goal {
  readonly of: 'log delivery' | 'ideal';
  readonly atLeast: number;
}

export function goalOf({ arm, load }: Piece): Goal | undefined {
  if (arm === 'log' || load.kind === 'idle') return undefined;
  const { serviceMs, recordBytes } = load;
  if (serviceMs >= 10) return { of: 'ideal', atLeast: 0.95 };
  if (serviceMs > 0) return undefined;
  return { of: 'log delivery', atLeast: recordBytes === largeBytes ? 0.6 : 0.4 };
}

export function armsOf(client: ClientName): DrainArm[] {
  return client === 'java-auto' ? ['log', 'keyed', 'keyed-poll'] : ['log', 'keyed'];
}

export const loads: readonly Load[] = [
  { kind: 'drain', serviceMs: 0, recordBytes: largeBytes },
  ...serviceTimesMs.map(
    (serviceMs): Load => ({ kind: 'drain', serviceMs, recordBytes: smallBytes }),
  ),
  { kind: 'idle' },
];

/** Arms of the same load follow each other, so that they meet the machine in the same mood. */
export function plan(): Piece[] {
  return clientNames.flatMap((client) =>
    loads.flatMap((load) => armsOf(client).map((arm) => ({ client, arm, load }))),
  );
}

/** Names the file of the result too. */
export function idOf({ client, arm, load }: Piece): string {
  return `${client}-${loadName(load)}-${arm}`;
}

export function loadName(load: Load): string {
  return load.kind === 'idle' ? 'idle' : `${load.serviceMs}ms-${load.recordBytes}B`;
}
