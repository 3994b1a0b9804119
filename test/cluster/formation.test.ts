import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { parseClusterNodes } from '../../src/cluster/cluster-nodes.ts';
import {
  memberId,
  nextConfiguration,
  nextFeatureLevel,
  nodeIdOf,
} from '../../src/cluster/formation.ts';
import { BrokerError } from '../../src/core/errors.ts';

function candidate(nodeId: number, isCaughtUp: boolean, directoryId = `d${nodeId}`) {
  const address = { host: 'h', port: 1, peerHost: 'h', peerPort: 2 };
  return { node: { nodeId, directoryId, ...address }, isCaughtUp };
}

const alone = { voters: ['1:d1'], learners: [] };

describe('the members of a cluster', () => {
  it('are node ids and directory ids', () => {
    assert.equal(memberId({ nodeId: 7, directoryId: 'abc' }), '7:abc');
    assert.equal(nodeIdOf('7:abc'), 7);
  });

  it('come in one by one, first as learners', () => {
    const both = [candidate(2, false), candidate(3, false)];
    const first = nextConfiguration(alone, both);
    assert.deepEqual(first, { voters: ['1:d1'], learners: ['2:d2'] });
    const caughtUp = [candidate(2, true), candidate(3, false)];
    const second = nextConfiguration(first!, caughtUp);
    assert.deepEqual(second, { voters: ['1:d1', '2:d2'], learners: [] });
    assert.deepEqual(nextConfiguration(second!, caughtUp)?.learners, ['3:d3']);
  });

  it('stay as they are when all are in', () => {
    const all = { voters: ['1:d1', '2:d2'], learners: [] };
    assert.equal(nextConfiguration(all, [candidate(2, true)]), undefined);
    assert.equal(nextConfiguration(all, []), undefined);
  });

  it('do not come back with a wiped folder before the former one is put out', () => {
    const all = { voters: ['1:d1', '2:d2'], learners: [] };
    assert.equal(nextConfiguration(all, [candidate(2, true, 'new')]), undefined);
  });
});

test('the feature level is what all members understand, once all have said it', () => {
  const group = { voters: ['1:d1', '2:d2'], learners: ['3:d3'] };
  const says = (member: string, level: number) => ({ member, level });
  const [one, two, three] = [says('1:d1', 3), says('2:d2', 2), says('3:d3', 3)];
  assert.equal(nextFeatureLevel(group, [one, two, three]), 2);
  assert.equal(nextFeatureLevel(group, [one, says('2:d2', 3), three, says('9:d9', 1)]), 3);
  assert.equal(nextFeatureLevel(group, [one, two]), 0, 'a learner is away');
  assert.equal(nextFeatureLevel(group, [one, three, says('2:other', 2)]), 0, 'another folder');
});

describe('cluster.nodes', () => {
  it('says where each node is', () => {
    const nodes = parseClusterNodes('1@a:9193, 2@[::1]:9194');
    assert.deepEqual(
      [...nodes],
      [
        [1, { host: 'a', port: 9193 }],
        [2, { host: '::1', port: 9194 }],
      ],
    );
    assert.equal(parseClusterNodes('').size, 0);
    assert.throws(() => parseClusterNodes('1@a:1,1@b:2'), /1 is there twice/);
    for (const text of ['a:1', '1@', '1@a', 'x@a:1', '1@a:99999']) {
      assert.throws(() => parseClusterNodes(text), BrokerError, text);
    }
  });
});
