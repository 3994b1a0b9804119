/** What producer and consumers share. */
import { Kafka, logLevel } from 'kafkajs';

// kafkajs warns on standard output about the default partitioner of version 2 unless told not to.
process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';

/** Standard output is the harness's, so warnings and errors go to standard error. */
const logCreator =
  () =>
  ({ level, namespace, label, log }) => {
    if (level > logLevel.WARN) return;
    console.error(`${label} ${namespace} ${log.message} ${log.error ?? ''}`);
  };

/** All settings are the defaults. */
export function newClient(bootstrap) {
  return new Kafka({ clientId: 'hol', brokers: [bootstrap], logCreator });
}

/** Microseconds of CLOCK_MONOTONIC, which is the same clock in all processes of the machine. */
export function nowUs() {
  return Number(process.hrtime.bigint() / 1000n);
}

/** Lines of standard input, until it ends. */
export async function* commands() {
  let rest = '';
  for await (const text of process.stdin) {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    yield* lines;
  }
}
