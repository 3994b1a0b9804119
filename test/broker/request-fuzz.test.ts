/**
 * Requests of every API in every version, right, wrong and in between. Whatever comes, only the
 * connection that it came on may end: the node goes on, nothing is logged as an error of the
 * broker's, and a client beside it notices nothing.
 *
 * `SEED=7 ROUNDS=20` runs more of it.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Handler } from '../../src/broker/handler.ts';
import { handlers } from '../../src/broker/handlers.ts';
import { seededRandom } from '../../src/core/random.ts';
import { ApiKey, apiName } from '../../src/protocol/api-keys.ts';
import { decode, encode } from '../../src/protocol/codec.ts';
import { responseHeaderVersion } from '../../src/protocol/frame.ts';
import { Reader } from '../../src/protocol/reader.ts';
import { allTables } from '../../src/protocol/registry.ts';
import { type MessageVector, messageVectors } from '../protocol/vectors.ts';
import { startWorld, type World } from './bad-input-world.ts';
import { PlausibleValues } from './plausible-values.ts';
import { type RawClient, requestFrame } from './raw-client.ts';

const seed = Number(process.env['SEED'] ?? 1);
const rounds = Number(process.env['ROUNDS'] ?? 1);

const tables = new Map([...allTables()].map((both) => [both.request.apiKey, both]));
const vectors: readonly MessageVector[] = messageVectors()
  .map(({ vector }) => vector)
  .filter(({ name }) => name.endsWith('Request'));

/** Each API with each of its versions. */
const versions = [...handlers.values()].flatMap((handler) => {
  const [min, max] = handler.versions;
  return Array.from({ length: max - min + 1 }, (_, i) => ({ handler, version: min + i }));
});

const groupApis: ReadonlySet<number> = new Set([
  ApiKey.JoinGroup,
  ApiKey.SyncGroup,
  ApiKey.Heartbeat,
  ApiKey.LeaveGroup,
  ApiKey.OffsetCommit,
  ApiKey.DescribeGroups,
]);
const groupVersions = versions.filter(({ handler }) => groupApis.has(handler.apiKey));

/** What may be unanswered for as long as its client wants; the others answer soon. */
const mayWait: ReadonlySet<number> = new Set([ApiKey.Fetch, ApiKey.JoinGroup, ApiKey.SyncGroup]);
const waitingMax = 50;
const fuzzSettings = { 'max.partitions': 2000, 'socket.request.max.bytes': 10 * 1024 * 1024 };

/** Sends requests, each followed by one that shows whether the connection still lives. */
class Sender {
  readonly #world: World;
  #client: RawClient | undefined;
  readonly #waiting: RawClient[] = [];
  readonly #onLateAnswer: (answer: unknown) => void;
  answered = 0;
  closed = 0;

  constructor(world: World, onLateAnswer: (answer: unknown) => void = () => undefined) {
    this.#world = world;
    this.#onLateAnswer = onLateAnswer;
  }

  /** The answer, or undefined where there is none (yet). It must be what its version promises. */
  async send({ apiKey }: Handler, version: number, body: Uint8Array): Promise<unknown> {
    const client = await this.#connected();
    client.write(requestFrame(apiKey, version, body, 1));
    if (mayWait.has(apiKey)) return this.#park(client, apiKey, version);
    client.write(requestFrame(ApiKey.ApiVersions, 0, Buffer.alloc(0), 2));
    let answer: unknown;
    for (;;) {
      const frame = await client.next();
      if (frame === undefined) {
        this.closed++;
        this.#client = undefined;
        return answer;
      }
      if (frame.readInt32BE(0) === 2) return answer;
      this.answered++;
      answer = readAnswer(apiKey, version, frame);
    }
  }

  async #connected(): Promise<RawClient> {
    if (this.#client === undefined || this.#client.isClosed) {
      this.#client = await this.#world.connect();
    }
    return this.#client;
  }

  /** Others go on while this one waits, and the oldest that waits has to go. */
  async #park(client: RawClient, apiKey: number, version: number): Promise<undefined> {
    this.#client = undefined;
    void client.next().then((frame) => {
      if (frame !== undefined) this.#onLateAnswer(readAnswer(apiKey, version, frame));
    });
    this.#waiting.push(client);
    if (this.#waiting.length > waitingMax) this.#waiting.shift()!.close();
    await this.ping();
  }

  /** A round trip on a connection of its own: what was sent before has been read. */
  async ping(): Promise<void> {
    const client = await this.#connected();
    client.write(requestFrame(ApiKey.ApiVersions, 0, Buffer.alloc(0), 2));
    assert.ok((await client.next()) !== undefined);
  }
}

function readAnswer(apiKey: number, version: number, frame: Buffer): unknown {
  const { response } = tables.get(apiKey)!;
  assert.equal(frame.readInt32BE(0), 1, apiName(apiKey));
  const reader = new Reader(frame, 4, frame.length);
  if (responseHeaderVersion(apiKey, version) === 1) reader.skipTags();
  return decode(response, version, frame, reader.position, frame.length);
}

test('every golden vector of a request is a request to the broker', async (t) => {
  const world = await startWorld(t, fuzzSettings);
  const sender = new Sender(world);
  for (const { handler, version } of versions) {
    const found = vectors.filter(
      (vector) => vector.apiKey === handler.apiKey && vector.version === version,
    );
    assert.ok(found.length > 0, `vectors of ${apiName(handler.apiKey)} version ${version}`);
    for (const { hex } of found) await sender.send(handler, version, Buffer.from(hex, 'hex'));
  }
  // They are sound: hardly any may cost its connection (Produce with acks=0 that is refused).
  assert.ok(sender.closed < sender.answered / 20, `${sender.closed} closed`);
  await world.finish();
});

test('random bodies and changed vectors end no more than their connection', async (t) => {
  const world = await startWorld(t, fuzzSettings);
  const sender = new Sender(world);
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random.next() * limit);
  for (const { handler, version } of versions) {
    const found = vectors.filter(
      (vector) => vector.apiKey === handler.apiKey && vector.version === version,
    );
    for (let round = 0; round < 5 * rounds; round++) {
      await sender.send(handler, version, random.bytes(below(80)));
      const bytes = Buffer.from(found[below(found.length)]!.hex, 'hex');
      for (let change = below(4); change >= 0 && bytes.length > 0; change--) {
        bytes[below(bytes.length)] = below(256);
      }
      const isCut = random.next() < 0.3;
      await sender.send(handler, version, isCut ? bytes.subarray(0, below(bytes.length)) : bytes);
    }
  }
  await world.finish();
});

test('plausible requests with strange values are answered', async (t) => {
  const world = await startWorld(t, fuzzSettings);
  const { node } = world;
  for (const name of ['t0', 't1', 't2']) await node.createTopic(name, 2);
  const random = seededRandom(seed);
  const values = new PlausibleValues(random);
  const sender = new Sender(world, (answer) => values.learn(answer));
  const heapBefore = heapUsed();
  for (let round = 0; round < 2000 * rounds; round++) {
    // Half of them are about groups, where one request rests on those before it.
    const choice = round % 2 === 0 ? versions : groupVersions;
    const { handler, version } = choice[Math.floor(random.next() * choice.length)]!;
    const { request } = tables.get(handler.apiKey)!;
    const value = values.request(request, version);
    const body = Buffer.concat(encode(request, version, value as never));
    values.learn(await sender.send(handler, version, body));
    // Time goes by: sessions end, parked requests are answered.
    if (round % 400 === 399) node.clock.advance(20_000);
  }
  await world.finish();
  const grownBytes = heapUsed() - heapBefore;
  assert.ok(grownBytes < 100 * 1024 * 1024, `the heap grew by ${grownBytes} bytes`);
});

/** What is in use once the garbage is gone. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
