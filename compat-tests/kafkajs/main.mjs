/** Entry point: `node main.mjs HOST:PORT`. FAST, ONLY and JOBS are read by the harness. */

import { registerCodecs } from './support/codecs.mjs';
import { Context, Suite } from './support/context.mjs';
import { runChecks } from './support/harness.mjs';
import './checks/produce.mjs';
import './checks/consume.mjs';
import './checks/groups.mjs';
import './checks/offsets.mjs';
import './checks/topics.mjs';
import './checks/configs.mjs';
import './checks/group-admin.mjs';

// Apache Kafka has no keyed delivery, and a Keylane of unknown settings may not have it for keyed-*.
if (process.env.COMPAT_BROKER === 'keylane') {
  await import('./checks/keyed.mjs');
  await import('./checks/keyed-restarts.mjs');
  await import('./checks/keyed-failures.mjs');
  await import('./checks/keyed-dead-letters.mjs');
  await import('./checks/keyed-workloads.mjs');
} else {
  console.log('the checks of keyed delivery are left out: COMPAT_BROKER is not keylane');
}

const [bootstrap] = process.argv.slice(2);
if (bootstrap === undefined) throw new Error('usage: node main.mjs HOST:PORT');

// kafkajs warns on standard output about the default partitioner of version 2 unless told not to.
process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';

await registerCodecs();
const suite = new Suite(bootstrap);
await suite.open();
const failed = await runChecks((onClose) => new Context(suite, onClose).open());
await suite.close();
// A failed check may leave sockets or timers of the client behind, which would keep Node alive.
process.exit(failed === 0 ? 0 : 1);
