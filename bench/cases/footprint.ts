/** Memory and the time to the first answer. */
import { kafka, keylane, pause } from '../broker-process.ts';
import { type Case, less, type Sample, type Session } from '../case.ts';
import { consumeLibrdkafka, produceLibrdkafka } from '../clients.ts';
import { loadOf } from './loads.ts';

/** A broker has then done what it does after a start. */
const settleMs = 5000;

async function measure(session: Session): Promise<Sample[]> {
  // The first start makes the data folder, which Kafka does in a process of its own.
  await session.restart();
  const emptyReady = session.broker.readySeconds;
  await pause(settleMs);
  const idle = session.broker.stats();
  await session.createTopics('footprint', 12);
  const load = loadOf('footprint-0', 1000, 12);
  for (let round = 1; round <= 2; round++) {
    await produceLibrdkafka(session.address, load);
    await consumeLibrdkafka(session.address, { ...load, records: load.records * round });
  }
  const loaded = session.broker.stats();
  await session.restart();
  return [
    less('ready, empty', 's', emptyReady),
    less('ready, with 1 GB', 's', session.broker.readySeconds),
    less('idle', 'RSS MB', idle.residentMb),
    less('after load', 'RSS MB', loaded.residentMb),
    less('under load, highest', 'RSS MB', loaded.residentPeakMb),
  ];
}

export const footprintCase: Case = {
  name: 'footprint',
  about: 'memory, and time from the start of the process to its first answer',
  variants: [keylane, kafka].map((arm) => ({ name: arm.name, arm, measure })),
  goals: [
    { what: /^ready/, unit: 's', of: 'ratio', limit: 0.5 },
    { what: /^idle/, unit: 'RSS MB', of: 'value', limit: 100 },
    { what: /load/, unit: 'RSS MB', of: 'value', limit: 300 },
  ],
};
