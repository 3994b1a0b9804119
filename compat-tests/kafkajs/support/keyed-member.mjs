/**
 * One consumer as a process of its own, so that it can be killed:
 * `keyed-member.mjs BOOTSTRAP TOPIC GROUP HANDLE_MS [commits]`. Its parent gets
 * `[event, key, number]`. With `commits` it commits each record by itself, in its handler.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { clientOf } from './keyed.mjs';

const [bootstrap, topic, groupId, handleMs, commits] = process.argv.slice(2);
const consumer = clientOf(bootstrap).consumer({
  groupId,
  maxWaitTimeInMs: 100,
  heartbeatInterval: 300,
  sessionTimeout: 6_000,
  rebalanceTimeout: 6_000,
});
consumer.on(consumer.events.GROUP_JOIN, () => process.send(['join']));
// The parent may die without killing us.
process.once('disconnect', () => process.exit(1));
await consumer.connect();
await consumer.subscribe({ topics: [topic], fromBeginning: true });
await consumer.run({
  autoCommit: commits === undefined,
  eachMessage: async ({ partition, message }) => {
    const key = message.key.toString();
    const number = Number(message.value);
    process.send(['begin', key, number]);
    await delay(Number(handleMs));
    process.send(['end', key, number]);
    if (commits === undefined) return;
    const offset = String(BigInt(message.offset) + 1n);
    await consumer
      .commitOffsets([{ topic, partition, offset }])
      .catch((error) => process.send(['refused', error.message]));
  },
});
