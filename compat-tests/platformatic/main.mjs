/** Entry point: `node main.mjs HOST:PORT`. FAST, ONLY and JOBS are read by the harness. */
import { runChecks } from '../kafkajs/support/harness.mjs';
import { Context, Suite } from './support/context.mjs';
import './checks/produce.mjs';
import './checks/consume.mjs';
import './checks/groups.mjs';
import './checks/offsets.mjs';
import './checks/topics.mjs';
import './checks/configs.mjs';
import './checks/group-admin.mjs';

// Apache Kafka has no keyed delivery, and a Keylane of unknown settings may not have it for keyed-*.
if (process.env.COMPAT_BROKER === 'keylane') await import('./checks/keyed.mjs');
else console.log('the checks of keyed delivery are left out: COMPAT_BROKER is not keylane');

const [bootstrap] = process.argv.slice(2);
if (bootstrap === undefined) throw new Error('usage: node main.mjs HOST:PORT');

const suite = new Suite(bootstrap);
const failed = await runChecks(async (onClose) => new Context(suite, onClose));
await suite.close();
// A failed check may leave sockets or timers of the client behind, which would keep Node alive.
process.exit(failed === 0 ? 0 : 1);
