/** How long the turns of Keylane's event loop get, with loop-delay.mjs in it. */
import { keylane } from '../broker-process.ts';
import { type Case, less, type Sample, type Session } from '../case.ts';
import { consumeLibrdkafka, type Load, produceLibrdkafka, produceTogether } from '../clients.ts';
import { loadOf } from './loads.ts';
import { many, measureSpread } from './many-partitions.ts';

const oneRecordEach = ['--linger', '0', '--batch-records', '1'];

async function measure(session: Session): Promise<Sample[]> {
  const samples: Sample[] = [];
  const during = async (what: string, load: () => Promise<unknown>): Promise<void> => {
    await session.broker.turns();
    await load();
    const { turnsMs, loopDelayMs } = await session.broker.turns();
    samples.push(
      less(what, 'p99 ms', turnsMs.p99),
      less(what, 'p99.9 ms', turnsMs.p999),
      less(what, 'max ms', turnsMs.max),
      less(what, 'max ms with what else ran', loopDelayMs.max),
    );
  };
  await session.warmUp();
  await session.createTopics('turns', 12);
  const load = loadOf('turns-0', 1000, 12);
  const small: Load = { ...load, recordBytes: 100, records: 300_000 };
  const { address } = session;
  await during('produce 1 kB × 12', () => produceLibrdkafka(address, load));
  await during('consume 1 kB × 12', () => consumeLibrdkafka(address, load));
  await during('requests of one 100 B record', () =>
    produceTogether(address, 4, small, oneRecordEach),
  );
  await during('100,000 partitions', () => measureSpread(session, many));
  return samples;
}

export const turnsCase: Case = {
  name: 'turns',
  about: 'turns of the event loop under load, as far as the broker itself was running',
  variants: [{ name: 'keylane', arm: { ...keylane, measuresTurns: true }, measure }],
  goals: [{ what: /./, unit: 'max ms', of: 'value', limit: 20 }],
};
