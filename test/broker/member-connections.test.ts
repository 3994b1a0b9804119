import assert from 'node:assert/strict';
import test from 'node:test';
import { MemberConnections } from '../../src/broker/member-connections.ts';
import { Member } from './group-client.ts';
import { startTestNode, until } from './support.ts';

/** Connections that a test closes by their number. */
class Sockets {
  readonly connections = new MemberConnections();
  readonly #onClosed = new Map<number, (() => void)[]>();

  open(connectionId: number): void {
    const client = {
      connectionId,
      host: '',
      localAddress: '',
      localPort: 0,
      softwareName: '',
      silentMs: 0,
    };
    const onClosed = (callback: () => void) => {
      this.#onClosed.set(connectionId, [...(this.#onClosed.get(connectionId) ?? []), callback]);
      return () => {};
    };
    this.connections.open({ client, onClosed });
  }

  hear(connectionId: number, groupId: string, memberId: string): void {
    this.open(connectionId);
    this.connections.note(connectionId, groupId, memberId);
  }

  close(connectionId: number): void {
    const callbacks = this.#onClosed.get(connectionId) ?? [];
    assert.equal(callbacks.length, 1, 'one callback, however often it is opened');
    for (const callback of callbacks) callback();
  }
}

test('a member is there while one of its connections is open', () => {
  const sockets = new Sockets();
  const { connections } = sockets;
  sockets.hear(1, 'g', 'a');
  sockets.hear(2, 'g', 'a');
  sockets.hear(1, 'g', 'a');
  assert.equal(connections.memberOf(1, 'g'), 'a');
  assert.equal(connections.memberOf(1, 'h'), undefined);
  sockets.close(1);
  assert.equal(connections.memberOf(1, 'g'), undefined);
  assert.ok(connections.hasOpenConnection('g', 'a'));
  sockets.close(2);
  assert.ok(!connections.hasOpenConnection('g', 'a'));
});

test('members that share a connection: the one that was heard last', () => {
  const sockets = new Sockets();
  const { connections } = sockets;
  sockets.hear(1, 'g', 'a');
  sockets.hear(1, 'g', 'b');
  sockets.hear(1, 'h', 'c');
  assert.equal(connections.memberOf(1, 'g'), 'b');
  assert.equal(connections.memberOf(1, 'h'), 'c');
  assert.ok(connections.hasOpenConnection('g', 'a'));
  sockets.hear(1, 'g', 'a');
  assert.equal(connections.memberOf(1, 'g'), 'a');
  connections.forget('g', 'a');
  assert.equal(connections.memberOf(1, 'g'), 'b');
  assert.ok(!connections.hasOpenConnection('g', 'a'));
  connections.forget('g', 'b');
  assert.equal(connections.memberOf(1, 'g'), undefined);
  sockets.hear(1, 'g', 'd');
  assert.equal(connections.memberOf(1, 'g'), 'd');
  sockets.close(1);
  assert.ok(!connections.hasOpenConnection('g', 'd'));
  assert.ok(!connections.hasOpenConnection('h', 'c'));
});

test('nothing is noted of a connection that closed before the answer', () => {
  const sockets = new Sockets();
  sockets.open(1);
  sockets.close(1);
  sockets.connections.note(1, 'g', 'a');
  assert.equal(sockets.connections.memberOf(1, 'g'), undefined);
  assert.ok(!sockets.connections.hasOpenConnection('g', 'a'));
});

test('a member from before a restart counts as there until it was heard', () => {
  const sockets = new Sockets();
  const { connections } = sockets;
  connections.restore('g', 'a');
  assert.ok(connections.hasOpenConnection('g', 'a'));
  sockets.hear(7, 'g', 'a');
  sockets.close(7);
  assert.ok(!connections.hasOpenConnection('g', 'a'));
  connections.restore('g', 'b');
  connections.forget('g', 'b');
  assert.ok(!connections.hasOpenConnection('g', 'b'));
});

test('the broker follows the connections of its members', async (t) => {
  const node = await startTestNode(t);
  const member = new Member(await node.connect(), { groupId: 'group' });
  await member.joinAlone();
  const isThere = () => node.broker.groups.connections.hasOpenConnection('group', member.memberId);
  assert.ok(isThere());
  member.client.close();
  await until(() => !isThere(), 'the connection is forgotten');
  member.client = await node.connect();
  assert.equal(await member.heartbeat(), 0);
  assert.ok(isThere());
  await node.restart();
  assert.ok(isThere(), 'it may be on its way back');
  member.client = await node.connect();
  await node.createTopic('topic', 1);
  assert.equal(await member.commit('topic', 0, 1), 0);
  member.client.close();
  await until(() => !isThere(), 'the connection is forgotten');
  member.client = await node.connect();
  assert.equal(await member.heartbeat(), 0);
  assert.equal(await member.leave(), 0);
  assert.ok(!isThere());
});
