/**
 * An open-loop producer: `node producer.mjs BOOTSTRAP TOPIC`. Each line `send FILE START_US` on
 * standard input has the file's records sent, each at its time after the start; the answer is
 * `sent RECORDS LATE_P99_MS LATE_MAX_MS`, the latter two being by how much their sends missed
 * their times. A line of the file is `AT_US KEY VALUE`, with tabs, in the order of time.
 */
import { readFileSync } from 'node:fs';
import { commands, newClient, nowUs } from './client.mjs';

/** So that a backlog does not go out as one huge request. */
const recordsPerSendMax = 1000;

const [bootstrap, topic] = process.argv.slice(2);
const producer = newClient(bootstrap).producer();
await producer.connect();
console.log('ready');
for await (const command of commands()) {
  const [, file, startUs] = /^send (\S+) (\d+)$/.exec(command) ?? [];
  if (file === undefined) throw new Error(`unknown command ${command}`);
  const records = readFileSync(file, 'utf8').trimEnd().split('\n').map(parse);
  const late = (await sendAll(records, Number(startUs))).sort();
  const p99 = late[Math.ceil(0.99 * late.length) - 1];
  console.log(`sent ${records.length} ${p99.toFixed(1)} ${late.at(-1).toFixed(1)}`);
}
await producer.disconnect();

function parse(line) {
  const [atUs, key, value] = line.split('\t');
  return { atUs: Number(atUs), key, value };
}

/**
 * One send at a time, with all that is due by then: records of a key are appended in the order of
 * the file, whatever happens to a request. Answers the milliseconds by which each was late.
 */
async function sendAll(records, startUs) {
  const lateMs = new Float64Array(records.length);
  let next = 0;
  while (next < records.length) {
    const waitUs = startUs + records[next].atUs - nowUs();
    if (waitUs > 0) await new Promise((resolve) => setTimeout(resolve, waitUs / 1000));
    const dueUs = nowUs() - startUs;
    const first = next;
    while (next < records.length && records[next].atUs <= dueUs) {
      lateMs[next] = (dueUs - records[next].atUs) / 1000;
      next++;
      if (next - first === recordsPerSendMax) break;
    }
    // A timer may fire a fraction of a millisecond early.
    if (next === first) continue;
    const messages = records.slice(first, next).map(({ key, value }) => ({ key, value }));
    await producer.send({ topic, messages });
  }
  return lateMs;
}
