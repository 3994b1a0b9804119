import assert from 'node:assert/strict';
import test from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  createTopicsRequest,
  createTopicsResponse,
} from '../../src/protocol/schema/19-create-topics.ts';
import {
  deleteTopicsRequest,
  deleteTopicsResponse,
} from '../../src/protocol/schema/20-delete-topics.ts';
import {
  deleteRecordsRequest,
  deleteRecordsResponse,
} from '../../src/protocol/schema/21-delete-records.ts';
import {
  offsetForLeaderEpochRequest,
  offsetForLeaderEpochResponse,
} from '../../src/protocol/schema/23-offset-for-leader-epoch.ts';
import {
  createPartitionsRequest,
  createPartitionsResponse,
} from '../../src/protocol/schema/37-create-partitions.ts';
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from '../../src/protocol/schema/44-incremental-alter-configs.ts';
import { ZERO_UUID } from '../../src/protocol/uuid.ts';
import { batchOf, produceTo } from './records.ts';
import { startTestNode, type TestClient, type TestNode } from './support.ts';

const names = ['one', 'two', 'three'];
const expected = new Set<number>([
  ErrorCode.NONE,
  ErrorCode.TOPIC_ALREADY_EXISTS,
  ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  ErrorCode.INVALID_PARTITIONS,
  ErrorCode.OFFSET_OUT_OF_RANGE,
]);

type Below = (bound: number) => number;

/** One request of any kind; answers its error code. */
async function act(client: TestClient, below: Below): Promise<number> {
  const name = names[below(names.length)]!;
  const timeoutMs = 1000;
  switch (below(7)) {
    case 0: {
      const plain = { numPartitions: 2, replicationFactor: 1, assignments: [], configs: [] };
      const request = { topics: [{ ...plain, name }], timeoutMs };
      const answer = await client.ask(createTopicsRequest, createTopicsResponse, 7, request);
      return answer.topics[0]!.errorCode;
    }
    case 1: {
      const request = { topics: [{ name, topicId: ZERO_UUID }], timeoutMs };
      const answer = await client.ask(deleteTopicsRequest, deleteTopicsResponse, 6, request);
      return answer.responses[0]!.errorCode;
    }
    case 2: {
      const partitions = [{ partitionIndex: below(2), offset: below(3) - 1 }];
      const request = { topics: [{ name, partitions }], timeoutMs };
      const answer = await client.ask(deleteRecordsRequest, deleteRecordsResponse, 2, request);
      return answer.topics[0]!.partitions[0]!.errorCode;
    }
    case 3: {
      const topics = [{ name, count: 2 + below(4), assignments: null }];
      const answer = await client.ask(createPartitionsRequest, createPartitionsResponse, 3, {
        topics,
        timeoutMs,
        validateOnly: false,
      });
      return answer.results[0]!.errorCode;
    }
    case 4: {
      const configs = [{ name: 'retention.ms', configOperation: 0, value: String(below(1e6)) }];
      const answer = await client.ask(
        incrementalAlterConfigsRequest,
        incrementalAlterConfigsResponse,
        1,
        { resources: [{ resourceType: 2, resourceName: name, configs }], validateOnly: false },
      );
      return answer.responses[0]!.errorCode;
    }
    case 5: {
      const partitions = [{ partition: below(2), leaderEpoch: 0 }];
      const answer = await client.ask(
        offsetForLeaderEpochRequest,
        offsetForLeaderEpochResponse,
        4,
        { topics: [{ topic: name, partitions }] },
      );
      return answer.topics[0]!.partitions[0]!.errorCode;
    }
    default: {
      const to = { topic: name, partition: below(2), records: batchOf(['v']) };
      return (await produceTo(client, to)).errorCode;
    }
  }
}

/** Everything that is known of topics. */
function describeAll(node: TestNode): unknown[] {
  const { partitions } = node.broker.replica.state.topics;
  return [...node.broker.topics.all()].map((topic) => [
    topic.name,
    topic.id,
    [...topic.configs],
    topic.partitions.map((each) => [
      partitions.logStart(each),
      partitions.end(each),
      partitions.bytes(each),
    ]),
  ]);
}

test('changes of the same topics at the same time leave a state that a restart finds', async (t) => {
  const node = await startTestNode(t, { settings: { 'log.retention.check.interval.ms': 1000 } });
  const random = seededRandom(7);
  const below: Below = (bound) => Math.floor(random.next() * bound);
  for (let round = 0; round < 3; round++) {
    const clients = await Promise.all(Array.from({ length: 8 }, () => node.connect()));
    await Promise.all(
      clients.map(async (client) => {
        for (let i = 0; i < 100; i++) {
          const code = await act(client, below);
          assert.ok(expected.has(code), `error ${code}`);
          if (below(50) === 0) node.clock.advance(1000);
        }
      }),
    );
    await node.broker.retention.settled();
    const before = describeAll(node);
    await node.restart();
    assert.deepEqual(describeAll(node), before);
  }
});
