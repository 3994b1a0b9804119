import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  describeClusterRequest,
  describeClusterResponse,
} from '../../src/protocol/schema/60-describe-cluster.ts';
import {
  listConfigResourcesRequest,
  listConfigResourcesResponse,
} from '../../src/protocol/schema/74-list-config-resources.ts';
import { startTestNode } from './support.ts';

test('the cluster is this node, in every version', async (t) => {
  const node = await startTestNode(t, { settings: { 'node.id': 5 } });
  const client = await node.connect();
  const { host, port } = node.address;
  for (let version = 0; version <= 2; version++) {
    const answer = await client.ask(describeClusterRequest, describeClusterResponse, version, {
      includeClusterAuthorizedOperations: false,
    });
    assert.equal(answer.errorCode, ErrorCode.NONE);
    assert.equal(answer.clusterId, node.broker.replica.state.clusterId);
    assert.equal(answer.controllerId, 5);
    assert.equal(answer.clusterAuthorizedOperations, -0x80000000);
    assert.deepEqual(
      answer.brokers.map((broker) => [broker.brokerId, broker.host, broker.port]),
      [[5, host, port]],
    );
  }
  const answer = await client.ask(describeClusterRequest, describeClusterResponse, 0, {
    includeClusterAuthorizedOperations: true,
  });
  // What Apache Kafka answers where nothing is forbidden.
  assert.equal(answer.clusterAuthorizedOperations, 8096);
});

test('controllers, and what is neither, are somewhere else', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  for (const [endpointType, code] of [
    [2, ErrorCode.MISMATCHED_ENDPOINT_TYPE],
    [3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE],
  ] as const) {
    const answer = await client.ask(describeClusterRequest, describeClusterResponse, 1, {
      includeClusterAuthorizedOperations: false,
      endpointType,
    });
    assert.deepEqual([answer.errorCode, answer.brokers], [code, []]);
  }
});

test('resources with configurations are listed by type', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  const list = async (version: number, resourceTypes?: readonly number[]) => {
    const request = resourceTypes === undefined ? {} : { resourceTypes };
    const answer = await client.ask(
      listConfigResourcesRequest,
      listConfigResourcesResponse,
      version,
      request,
    );
    const found = answer.configResources.map((each) => [each.resourceType, each.resourceName]);
    return [answer.errorCode, found];
  };
  const [topic, broker] = [
    [2, 'orders'],
    [4, '0'],
  ];
  assert.deepEqual(await list(0), [ErrorCode.NONE, []]);
  assert.deepEqual(await list(1), [ErrorCode.NONE, [topic, broker]]);
  assert.deepEqual(await list(1, [4, 4]), [ErrorCode.NONE, [broker]]);
  assert.deepEqual(await list(1, [2, 16]), [ErrorCode.NONE, [topic]]);
  assert.deepEqual(await list(1, [2, 77]), [ErrorCode.UNSUPPORTED_VERSION, []]);
});
