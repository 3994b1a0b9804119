/**
 * Serial consumers of one group, each a client of its own:
 *
 *   node consumers.mjs BOOTSTRAP TOPIC GROUP CONSUMERS PARTITIONS EVENTS_FILE
 *
 * A value is `SEQUENCE SERVICE_US`; handling it is to wait for so long. Standard output says
 * `ready` when every consumer has its share of the partitions, and `handled N` as that goes up,
 * after the file has the events: `SEQUENCE START_US END_US MEMBER PARTITION OFFSET`. They leave
 * the group when standard input ends.
 *
 * A value that begins with `-` is no work, and only counted, so that writing events is not what
 * is measured: `- START_US END_US MEMBER COUNT` for what a member had since the line before.
 */
import { createWriteStream } from 'node:fs';
import { commands, newClient, nowUs } from './client.mjs';

const flushMs = 100;
const counted = '-'.charCodeAt(0);

const [bootstrap, topic, groupId, countText, partitionsText, file] = process.argv.slice(2);
const count = Number(countText);
const partitions = Number(partitionsText);

const events = createWriteStream(file);
let lines = [];
let handled = 0;
/** For each member, since when so many were counted. */
const runs = Array.from({ length: Number(countText) }, () => ({ startUs: 0, count: 0 }));
const assigned = new Array(count).fill(0);
let isReady = false;

const consumers = await Promise.all(Array.from({ length: count }, (_, member) => open(member)));
const flushing = setInterval(flush, flushMs);
for await (const _ of commands());
await Promise.all(consumers.map((consumer) => consumer.disconnect()));
clearInterval(flushing);
flush();
events.end();

async function open(member) {
  const consumer = newClient(bootstrap).consumer({ groupId });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    assigned[member] = payload.memberAssignment[topic]?.length ?? 0;
    const isShared = assigned.every((one) => one >= Math.floor(partitions / count));
    if (isReady || !isShared || assigned.reduce((a, b) => a + b) !== partitions) return;
    isReady = true;
    console.log('ready');
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      if (message.value[0] === counted) {
        const run = runs[member];
        if (run.count++ === 0) run.startUs = nowUs();
        return;
      }
      const startUs = nowUs();
      const [sequence, serviceUs] = message.value.toString().split(' ');
      if (serviceUs !== '0') {
        await new Promise((resolve) => setTimeout(resolve, Math.ceil(Number(serviceUs) / 1000)));
      }
      lines.push(`${sequence} ${startUs} ${nowUs()} ${member} ${partition} ${message.offset}\n`);
      handled++;
    },
  });
  return consumer;
}

function flush() {
  for (const [member, run] of runs.entries()) {
    if (run.count === 0) continue;
    lines.push(`- ${run.startUs} ${nowUs()} ${member} ${run.count}\n`);
    handled += run.count;
    run.count = 0;
  }
  if (lines.length === 0) return;
  const text = lines.join('');
  const total = handled;
  lines = [];
  events.write(text, () => console.log(`handled ${total}`));
}
