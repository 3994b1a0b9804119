/**
 * A node with a client on it that must not notice what others send, and a log in which no error
 * may stand.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Settings } from '../../src/config/settings.ts';
import { ErrorLog, GoodClient } from './good-client.ts';
import { RawClient } from './raw-client.ts';
import { startTestNode, type TestNode } from './support.ts';

export interface World {
  readonly node: TestNode;
  readonly good: GoodClient;
  connect(): Promise<RawClient>;
  /** Nothing may have gone wrong but for the connections of the bad clients. */
  finish(): Promise<void>;
}

export async function startWorld(t: TestContext, settings: Partial<Settings> = {}): Promise<World> {
  const log = new ErrorLog();
  const node = await startTestNode(t, { settings, log });
  const good = await GoodClient.start(node);
  const raw = new Set<RawClient>();
  t.after(() => {
    for (const client of raw) client.close();
  });
  return {
    node,
    good,
    async connect() {
      const client = await RawClient.connect(node.address);
      raw.add(client);
      return client;
    },
    async finish() {
      assert.deepEqual(log.errors, []);
      await good.stop();
      for (const client of raw) client.close();
      assert.deepEqual(log.errors, []);
    },
  };
}

/** Sends the bytes on a connection of their own, which must end without an answer. */
export async function expectClosed(world: World, bytes: Uint8Array, what: string): Promise<void> {
  const client = await world.connect();
  client.write(bytes);
  assert.equal(await client.next(), undefined, what);
}
