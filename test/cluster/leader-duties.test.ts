import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memberId } from '../../src/cluster/formation.ts';
import { LeaderDuties } from '../../src/cluster/leader-duties.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { Replica } from '../../src/replica/replica.ts';
import { StateMachine } from '../../src/state/state-machine.ts';
import { TestClock } from '../broker/support.ts';

function node(nodeId: number) {
  const address = { host: 'h', port: 1, peerHost: 'h', peerPort: 2 };
  return { nodeId, directoryId: `d${nodeId}`, ...address };
}

/** Node 1 leads four voters, of which those with the given ids have room, and are in sync. */
async function handedOverTo(isLow: boolean, roomy: number[], inSync: number[]): Promise<string[]> {
  const state = new StateMachine();
  state.clusterId = 'c';
  const found: string[] = [];
  const others = [2, 3, 4].map(node);
  const voters = [node(1), ...others].map(memberId);
  const replica = {
    ...{ isLeader: true, state, disk: { isLow }, propose: () => undefined },
    raft: {
      ...{ configuration: { voters, learners: [] }, mayReconfigure: false },
      isInSync: (member: string) => inSync.some((id) => memberId(node(id)) === member),
    },
    consensus: { handOver: (member: string) => found.push(member) > 0 },
  };
  const asked: Promise<boolean>[] = [];
  const duties = new LeaderDuties({
    ...{ replica: replica as unknown as Replica, self: node(1), level: 1 },
    present: () =>
      others.map((one) => ({ clusterId: 'c', node: one, level: 1, tenantPortBase: 0 })),
    hasRoom: (nodeId) => {
      asked.push(Promise.resolve(roomy.includes(nodeId)));
      return asked.at(-1)!;
    },
    ...{ clock: new TestClock(), log: silentLogger },
  });
  duties.form();
  // The next look is a second away: it does not ask all the time.
  duties.form();
  for (let i = 0; i < asked.length; i++) {
    await asked[i];
    await Promise.resolve();
  }
  return found;
}

test('a leader whose disk is low hands over to a voter in sync that has room', async () => {
  assert.deepEqual(await handedOverTo(true, [3, 4], [2, 3, 4]), ['3:d3']);
  assert.deepEqual(await handedOverTo(true, [3, 4], [2, 4]), ['4:d4']);
});

test('a leader goes on if its disk has room, or nobody else has', async () => {
  assert.deepEqual(await handedOverTo(false, [3, 4], [2, 3, 4]), []);
  assert.deepEqual(await handedOverTo(true, [], [2, 3, 4]), []);
  assert.deepEqual(await handedOverTo(true, [3], [2, 4]), []);
});
