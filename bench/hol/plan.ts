/** All runs that the table needs, as data. */
import type { ArmName } from './arms.ts';
import type { ClientName } from './programs.ts';
import { makeWorkload, type Workload, type WorkloadName, workloadNames } from './workloads.ts';

/** One run. */
export interface Piece {
  readonly workload: WorkloadName;
  readonly arm: ArmName;
  readonly client: ClientName;
  readonly seed: number;
  readonly scale: number;
  /** The slow records made quick, for the amplification. */
  readonly quick: boolean;
}

/** So that all of it takes less than an hour and a half. */
export const planScales: Readonly<Record<WorkloadName, number>> = {
  W0: 1,
  W1: 0.1,
  W2a: 0.1,
  W2b: 0.1,
  W3: 0.1,
  W4a: 0.3,
  W4b: 0.3,
  W5: 0.1,
  W6: 0.5,
};

const seeds = [1, 2, 3];

export function plan(): Piece[] {
  return [...kafkajsPieces(), ...quickPieces(), ...fullPieces(), ...otherClients()];
}

/** Names the file of the result too. */
export function idOf({ workload, arm, client, seed, scale, quick }: Piece): string {
  return [workload, arm, client, `s${seed}`, `x${scale}`, ...(quick ? ['quick'] : [])].join('-');
}

export function workloadOf({ workload, seed, scale, quick }: Piece): Workload {
  return makeWorkload(workload, { seed, scale, quick });
}

function piece(
  workload: WorkloadName,
  arm: ArmName,
  client: ClientName,
  more: Partial<Pick<Piece, 'seed' | 'scale' | 'quick'>> = {},
): Piece {
  return {
    ...{ workload, arm, client, seed: 1, quick: false, scale: planScales[workload] },
    ...more,
  };
}

/** Everything; the seeds are for what has a goal. */
function kafkajsPieces(): Piece[] {
  return workloadNames.flatMap((workload) => [
    ...(['kafka', 'kafka-4c', 'log'] as const).map((arm) => piece(workload, arm, 'kafkajs')),
    ...(workload === 'W1' ? [piece(workload, 'log-4c', 'kafkajs')] : []),
    ...seeds.map((seed) => piece(workload, 'keyed', 'kafkajs', { seed })),
  ]);
}

/** What the slow record does to the others, where a run is short. */
function quickPieces(): Piece[] {
  return (['kafka', 'log', 'keyed'] as const).map((arm) =>
    piece('W1', arm, 'kafkajs', { quick: true }),
  );
}

/** A minute's record at full length, which no window hides. */
function fullPieces(): Piece[] {
  return [
    piece('W1', 'keyed', 'kafkajs', { scale: 1 }),
    // kafkajs would be expelled by Kafka in the middle of it, again and again; Java is not.
    piece('W1', 'kafka', 'java-manual', { scale: 1 }),
  ];
}

function otherClients(): Piece[] {
  const clients: readonly (readonly [ClientName, readonly ArmName[]])[] = [
    ['java-manual', ['kafka', 'kafka-4c', 'log', 'keyed']],
    ['java-auto', ['kafka', 'kafka-4c', 'log', 'keyed', 'keyed-poll']],
    ['librdkafka', ['kafka', 'kafka-4c', 'log', 'keyed']],
  ];
  return clients.flatMap(([client, armsOf]) =>
    (['W1', 'W6'] as const).flatMap((workload) =>
      armsOf.map((arm) => piece(workload, arm, client)),
    ),
  );
}
