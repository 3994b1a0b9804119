/**
 * The application that moves: orders are written by one process and worked on by several. It knows
 * nothing of Keylane. Where it runs is its environment, and of that only BOOTSTRAP changes.
 *
 *   BOOTSTRAP=HOST:PORT TOPIC=NAME STATE=FILE app.mjs produce
 *   BOOTSTRAP=HOST:PORT TOPIC=NAME STATE=FILE app.mjs consume
 *
 * It ends on SIGTERM, after what it has begun. The producer keeps in STATE how far it got, as an
 * application would in its database; a consumer writes there one line for each record it handled.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import kafkajs from 'kafkajs';

const { Kafka, logLevel, Partitioners } = kafkajs;
const { BOOTSTRAP, TOPIC, STATE } = process.env;
const customers = Array.from({ length: 60 }, (_, index) => `customer-${index}`);
/** Working on an order of this one takes long. */
const slowCustomer = 'customer-0';
const slowMs = 1_500;
const quickMs = 2;
/** A few customers order at a time, all of them in turn; the slow one in every `slowRounds` turns. */
const ordersAtOnce = 6;
const pauseMs = 20;
const slowRounds = 15;

const kafka = new Kafka({
  clientId: 'orders',
  brokers: [BOOTSTRAP],
  logLevel: logLevel.NOTHING,
});

let isStopping = false;
process.once('SIGTERM', () => {
  isStopping = true;
});

async function untilStopped() {
  while (!isStopping) await delay(20);
}

async function produce() {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  const next = existsSync(STATE) ? JSON.parse(readFileSync(STATE, 'utf8')) : { turn: 0 };
  while (!isStopping) {
    const at = next.turn % customers.length;
    const isSlowDue = next.turn % (customers.length * slowRounds) === 0;
    const messages = customers
      .slice(at, at + ordersAtOnce)
      .filter((customer) => customer !== slowCustomer || isSlowDue)
      .map((customer) => {
        const number = next[customer] ?? 0;
        next[customer] = number + 1;
        return { key: customer, value: JSON.stringify({ number, sentMs: Date.now() }) };
      });
    await producer.send({ topic: TOPIC, messages });
    next.turn += ordersAtOnce;
    await delay(pauseMs);
  }
  writeFileSync(STATE, JSON.stringify(next));
  await producer.disconnect();
}

async function consume() {
  const consumer = kafka.consumer({
    groupId: 'order-workers',
    heartbeatInterval: 1_000,
    maxWaitTimeInMs: 500,
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [TOPIC], fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message }) => {
      const customer = message.key.toString();
      const { number, sentMs } = JSON.parse(message.value.toString());
      const waitedMs = Date.now() - sentMs;
      await delay(customer === slowCustomer ? slowMs : quickMs);
      const entry = { customer, number, waitedMs, doneMs: Date.now() };
      appendFileSync(STATE, `${JSON.stringify(entry)}\n`);
    },
  });
  await untilStopped();
  await consumer.disconnect();
}

await (process.argv[2] === 'produce' ? produce() : consume());
