import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Broker } from '../../src/broker/broker.ts';
import { Nodes } from '../../src/broker/nodes.ts';

/** A leader of these voters, of whom all are in sync; `committed` is what its state says. */
function nodesOf(voters: readonly string[], committed: readonly string[] | undefined): Nodes {
  const members = committed && { voters: committed, learners: [], removed: [], index: 1 };
  const replica = {
    raft: { configuration: { voters, learners: [] }, isInSync: () => true },
    state: { members, nodes: new Map() },
    mayAnswer: true,
    leaderEpoch: 3,
  };
  const broker = { nodeId: 1, clock: { monotonicMs: () => 0 }, replica };
  return new Nodes(broker as unknown as Broker, undefined);
}

test('a node that comes is a replica once that is committed, as its leader may be lost before', () => {
  const { replicaNodes, isrNodes } = nodesOf(['1:a', '3:c', '2:b'], ['1:a', '2:b']).placement;
  assert.deepEqual(
    [replicaNodes, isrNodes],
    [
      [1, 2],
      [1, 2],
    ],
  );
});

test('a node that goes is a replica until that is committed', () => {
  const { replicaNodes, isrNodes } = nodesOf(['1:a'], ['1:a', '2:b']).placement;
  assert.deepEqual(
    [replicaNodes, isrNodes],
    [
      [1, 2],
      [1, 2],
    ],
  );
});

test('a group that was given its members at first has these', () => {
  const { leaderId, replicaNodes } = nodesOf(['2:b', '1:a'], undefined).placement;
  assert.deepEqual([leaderId, replicaNodes], [1, [1, 2]]);
});
