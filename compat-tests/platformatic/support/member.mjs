/**
 * A member of a group in a process of its own, to be killed: `member.mjs HOST:PORT GROUP TOPIC`.
 */
import { Consumer } from '@platformatic/kafka';

const [bootstrap, groupId, topic] = process.argv.slice(2);
const consumer = new Consumer({
  clientId: 'keylane-compat-member',
  bootstrapBrokers: [bootstrap],
  groupId,
  sessionTimeout: 6_000,
  rebalanceTimeout: 6_000,
  heartbeatInterval: 500,
});
const stream = await consumer.consume({ topics: [topic] });
stream.on('data', () => {});
process.stdout.write('joined');
