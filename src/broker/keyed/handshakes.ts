import type { Asker } from './lane-offsets.ts';

/** Clients that were told of one lane and never fetched it; the oldest makes room. */
const askersPerLaneMax = 16;

export interface Handshake {
  readonly asker: Asker;
  readonly slot: number;
}

/**
 * Clients that were told their lane's position and have not fetched it yet. Some of them ask for
 * the end of the partition in between: for them it is the lane's end.
 */
export class Handshakes {
  readonly #byLane = new Map<string, Handshake[]>();

  begin(topicId: string, lane: number, handshake: Handshake): void {
    const key = laneKey(topicId, lane);
    const others = (this.#byLane.get(key) ?? []).filter(
      (known) => !isSame(known.asker, handshake.asker),
    );
    this.#byLane.set(key, [...others.slice(1 - askersPerLaneMax), handshake]);
  }

  /**
   * What the asker was told of the lane. It is known by its connection, or by its client id and
   * host.
   */
  find(topicId: string, lane: number, asker: Asker): Handshake | undefined {
    const askers = this.#byLane.get(laneKey(topicId, lane));
    return askers?.find((known) => isSame(known.asker, asker));
  }

  /** The lane is being fetched. */
  end(topicId: string, lane: number): void {
    this.#byLane.delete(laneKey(topicId, lane));
  }
}

function isSame(a: Asker, b: Asker): boolean {
  if (a.client.connectionId === b.client.connectionId) return true;
  return a.clientId === b.clientId && a.client.host === b.client.host;
}

function laneKey(topicId: string, lane: number): string {
  return `${topicId}:${lane}`;
}
