import { DeliveryCounters } from '../../../src/groups/keyed/counters.ts';
import { Dispatcher, type DispatcherSettings } from '../../../src/groups/keyed/dispatcher.ts';
import { Ledger } from '../../../src/state/keyed/ledger.ts';

/** Of a group that was given none: no limit is in the way, and no retry has to be waited for. */
export const keyedSettings = {
  finishesProven: false,
  window: 100,
  unfinishedMax: 1000,
  neverRejects: false,
  attemptsMax: 5,
  retryBackoffMs: 0,
  retryBackoffMsMax: 0,
  halts: false,
};

export function at(ms: number) {
  return { monotonicMs: ms, wallMs: ms };
}

/** Of a group that has just been opened, with lanes from 1 on. */
export function newDispatcher(settings: DispatcherSettings): Dispatcher {
  const effect = { kind: 'opened' as const, slot: 1, laneBase: 1, starts: [] };
  const ledger = Ledger.open('g', '00'.repeat(16), effect);
  return new Dispatcher(ledger, settings, new DeliveryCounters());
}
