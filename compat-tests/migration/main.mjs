/**
 * Moves the application of app.mjs from Apache Kafka to the broker at BOOTSTRAP, while orders keep
 * coming: `node main.mjs BOOTSTRAP`. Counts what each broker got and gave.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import kafkajs from 'kafkajs';

const { Kafka, logLevel } = kafkajs;
const here = fileURLToPath(new URL('.', import.meta.url));
const consumers = 3;
const partitions = 6;
/** How long orders flow on each broker. */
const phaseMs = process.env.FAST === '1' ? 8_000 : 12_000;
/** What waited for the workers to come, and what they were handed then, is worked off by now. */
const settledMs = 4_000;
const waitMsMax = 60_000;
/** An order of the slow customer takes longer than this; nobody else should wait so long. */
const lateMs = 1_000;

const [target] = process.argv.slice(2);
if (target === undefined) throw new Error('usage: node main.mjs HOST:PORT');
const isKeyed = process.env.COMPAT_BROKER === 'keylane';
const folder = mkdtempSync(join(tmpdir(), 'migration-'));
const topic = `keyed-orders-${process.pid}-${Date.now().toString(36)}`;
const children = new Set();

function start(command, args, env = {}) {
  const stdio = ['ignore', 'ignore', 'inherit'];
  const child = spawn(command, args, { cwd: here, env: { ...process.env, ...env }, stdio });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const stopped = await Promise.race([exited, delay(waitMsMax, null, { ref: false })]);
  if (stopped === null) throw new Error(`process ${child.pid} does not end`);
}

async function until(what, condition) {
  const deadline = performance.now() + waitMsMax;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`timed out waiting until ${what}`);
    await delay(200);
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** What an operator does on a broker: makes the topic, and looks at the lag. */
class Site {
  constructor(name, address) {
    this.name = name;
    this.address = address;
    const retry = { initialRetryTime: 200, retries: 30, maxRetryTime: 1_000 };
    const clientId = 'operator';
    this.admin = new Kafka({
      clientId,
      brokers: [address],
      logLevel: logLevel.NOTHING,
      retry,
    }).admin();
    this.workers = [];
    this.producer = null;
    this.files = [];
  }

  async open() {
    await until(`${this.name} answers`, () =>
      this.admin.connect().then(
        () => true,
        () => false,
      ),
    );
    await this.admin.createTopics({ topics: [{ topic, numPartitions: partitions }] });
  }

  /** Starts the one program; nothing but the address depends on the broker. */
  run(role, file) {
    const env = { BOOTSTRAP: this.address, TOPIC: topic, STATE: join(folder, file) };
    return start(process.execPath, ['app.mjs', role], env);
  }

  startWorkers() {
    this.files = Array.from({ length: consumers }, (_, index) => `${this.name}-${index}.log`);
    this.workers = this.files.map((file) => this.run('consume', file));
  }

  startProducer() {
    this.producer = this.run('produce', 'producer.json');
  }

  async stopWorkers() {
    await Promise.all(this.workers.map(stop));
  }

  async sent() {
    const ends = await this.admin.fetchTopicOffsets(topic);
    return ends.reduce((sum, { high }) => sum + Number(high), 0);
  }

  async lag() {
    const ends = await this.admin.fetchTopicOffsets(topic);
    const groupId = 'order-workers';
    const [{ partitions: found }] = await this.admin.fetchOffsets({ groupId, topics: [topic] });
    const committed = new Map(found.map(({ partition, offset }) => [partition, Number(offset)]));
    const lagOf = ({ partition, high }) =>
      Number(high) - Math.max(0, committed.get(partition) ?? 0);
    return ends.reduce((sum, end) => sum + lagOf(end), 0);
  }

  handled() {
    const present = this.files.map((file) => join(folder, file)).filter((file) => existsSync(file));
    const lines = present.flatMap((file) => readFileSync(file, 'utf8').trim().split('\n'));
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
  }
}

async function move(from, to) {
  console.log(`orders flow on ${from.name}`);
  from.startWorkers();
  from.startProducer();
  await delay(phaseMs);

  console.log(`the producer moves to ${to.name}, the workers finish what is on ${from.name}`);
  await stop(from.producer);
  to.startProducer();
  await until(`${from.name} has no lag`, async () => (await from.lag()) === 0);
  await from.stopWorkers();

  console.log(`the workers move to ${to.name}`);
  to.startWorkers();
  await delay(phaseMs);
  await stop(to.producer);
  await until(`${to.name} has no lag`, async () => (await to.lag()) === 0);
  await to.stopWorkers();
}

let passed = 0;
let failed = 0;

function check(name, body) {
  try {
    body();
    passed++;
    console.log(`ok ${name}`);
  } catch (error) {
    failed++;
    console.log(`not ok ${name}\n    ${error.message}`);
  }
}

/** Each customer's orders, in the order in which they were done, are 0, 1, 2, ... */
function assertOrder(handled) {
  const next = new Map();
  for (const { customer, number } of handled.toSorted((a, b) => a.doneMs - b.doneMs)) {
    const expected = next.get(customer) ?? 0;
    assert.equal(number, expected, `${customer}: order ${number} instead of ${expected}`);
    next.set(customer, expected + 1);
  }
}

/** Orders of the others, once the workers have settled. */
function ofOthers(handled) {
  const first = Math.min(...handled.map(({ doneMs }) => doneMs));
  return handled.filter(
    ({ customer, doneMs }) => customer !== 'customer-0' && doneMs > first + settledMs,
  );
}

function isLate({ waitedMs }) {
  return waitedMs > lateMs;
}

async function report(from, to) {
  const all = [];
  for (const site of [from, to]) {
    const [sent, handled] = [await site.sent(), site.handled()];
    all.push(...handled);
    const others = ofOthers(handled);
    console.log(
      `${site.name}: ${sent} orders sent, ${handled.length} handled; of ${others.length} of other ` +
        `customers ${others.filter(isLate).length} waited more than ${lateMs} ms`,
    );
    check(`${site.name}: every order is handled once`, () => {
      const distinct = new Set(handled.map(({ customer, number }) => `${customer}/${number}`));
      assert.ok(sent > 0);
      assert.deepEqual([handled.length, distinct.size], [sent, sent]);
    });
  }
  check('the orders of each customer are handled in order, across the move', () => {
    assertOrder(all);
  });
  if (!isKeyed) {
    console.log('whether others wait for the slow customer is left out: not on Keylane');
    return;
  }
  check(`${to.name}: other customers do not wait for the slow one`, () => {
    const others = ofOthers(to.handled());
    const late = others.filter(isLate);
    assert.ok(others.length > 0);
    assert.ok(late.length <= others.length / 100, `${late.length} of ${others.length} waited`);
  });
}

async function main() {
  const kafkaPort = await freePort();
  const script = join(here, '..', 'apache-kafka', 'start.sh');
  const kafka = start('bash', [script, String(kafkaPort), join(folder, 'kafka')]);
  const from = new Site('Kafka', `127.0.0.1:${kafkaPort}`);
  const to = new Site(isKeyed ? 'Keylane' : 'the other broker', target);
  try {
    await from.open();
    await to.open();
    await move(from, to);
    await report(from, to);
    await to.admin.deleteTopics({ topics: [topic] });
    await Promise.all([from.admin.disconnect(), to.admin.disconnect()]);
    await stop(kafka);
  } finally {
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

await main().catch((error) => {
  failed++;
  console.log(`not ok the move\n    ${error.stack}`);
});
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
