/** The field tables of the requests and responses that this program can read and write, by API. */
import { ApiKey, apiName } from './api-keys.ts';
import { decode } from './codec.ts';
import { DecodeError } from './codec-error.ts';
import { produceRequest, produceResponse } from './schema/00-produce.ts';
import { fetchRequest, fetchResponse } from './schema/01-fetch.ts';
import { listOffsetsRequest, listOffsetsResponse } from './schema/02-list-offsets.ts';
import { metadataRequest, metadataResponse } from './schema/03-metadata.ts';
import { offsetCommitRequest, offsetCommitResponse } from './schema/08-offset-commit.ts';
import { offsetFetchRequest, offsetFetchResponse } from './schema/09-offset-fetch.ts';
import { findCoordinatorRequest, findCoordinatorResponse } from './schema/10-find-coordinator.ts';
import { joinGroupRequest, joinGroupResponse } from './schema/11-join-group.ts';
import { heartbeatRequest, heartbeatResponse } from './schema/12-heartbeat.ts';
import { leaveGroupRequest, leaveGroupResponse } from './schema/13-leave-group.ts';
import { syncGroupRequest, syncGroupResponse } from './schema/14-sync-group.ts';
import { describeGroupsRequest, describeGroupsResponse } from './schema/15-describe-groups.ts';
import { listGroupsRequest, listGroupsResponse } from './schema/16-list-groups.ts';
import { saslHandshakeRequest, saslHandshakeResponse } from './schema/17-sasl-handshake.ts';
import { apiVersionsRequest, apiVersionsResponse } from './schema/18-api-versions.ts';
import { createTopicsRequest, createTopicsResponse } from './schema/19-create-topics.ts';
import { deleteTopicsRequest, deleteTopicsResponse } from './schema/20-delete-topics.ts';
import { deleteRecordsRequest, deleteRecordsResponse } from './schema/21-delete-records.ts';
import { initProducerIdRequest, initProducerIdResponse } from './schema/22-init-producer-id.ts';
import {
  offsetForLeaderEpochRequest,
  offsetForLeaderEpochResponse,
} from './schema/23-offset-for-leader-epoch.ts';
import {
  addPartitionsToTxnRequest,
  addPartitionsToTxnResponse,
} from './schema/24-add-partitions-to-txn.ts';
import { addOffsetsToTxnRequest, addOffsetsToTxnResponse } from './schema/25-add-offsets-to-txn.ts';
import { endTxnRequest, endTxnResponse } from './schema/26-end-txn.ts';
import { txnOffsetCommitRequest, txnOffsetCommitResponse } from './schema/28-txn-offset-commit.ts';
import { describeAclsRequest, describeAclsResponse } from './schema/29-describe-acls.ts';
import { createAclsRequest, createAclsResponse } from './schema/30-create-acls.ts';
import { deleteAclsRequest, deleteAclsResponse } from './schema/31-delete-acls.ts';
import { describeConfigsRequest, describeConfigsResponse } from './schema/32-describe-configs.ts';
import { alterConfigsRequest, alterConfigsResponse } from './schema/33-alter-configs.ts';
import { describeLogDirsRequest, describeLogDirsResponse } from './schema/35-describe-log-dirs.ts';
import {
  saslAuthenticateRequest,
  saslAuthenticateResponse,
} from './schema/36-sasl-authenticate.ts';
import {
  createPartitionsRequest,
  createPartitionsResponse,
} from './schema/37-create-partitions.ts';
import { deleteGroupsRequest, deleteGroupsResponse } from './schema/42-delete-groups.ts';
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from './schema/44-incremental-alter-configs.ts';
import { offsetDeleteRequest, offsetDeleteResponse } from './schema/47-offset-delete.ts';
import {
  describeClientQuotasRequest,
  describeClientQuotasResponse,
} from './schema/48-describe-client-quotas.ts';
import {
  alterClientQuotasRequest,
  alterClientQuotasResponse,
} from './schema/49-alter-client-quotas.ts';
import {
  describeUserScramCredentialsRequest,
  describeUserScramCredentialsResponse,
} from './schema/50-describe-user-scram-credentials.ts';
import {
  alterUserScramCredentialsRequest,
  alterUserScramCredentialsResponse,
} from './schema/51-alter-user-scram-credentials.ts';
import { describeQuorumRequest, describeQuorumResponse } from './schema/55-describe-quorum.ts';
import { describeClusterRequest, describeClusterResponse } from './schema/60-describe-cluster.ts';
import {
  describeProducersRequest,
  describeProducersResponse,
} from './schema/61-describe-producers.ts';
import {
  describeTransactionsRequest,
  describeTransactionsResponse,
} from './schema/65-describe-transactions.ts';
import {
  listTransactionsRequest,
  listTransactionsResponse,
} from './schema/66-list-transactions.ts';
import {
  consumerGroupHeartbeatRequest,
  consumerGroupHeartbeatResponse,
} from './schema/68-consumer-group-heartbeat.ts';
import {
  consumerGroupDescribeRequest,
  consumerGroupDescribeResponse,
} from './schema/69-consumer-group-describe.ts';
import {
  listConfigResourcesRequest,
  listConfigResourcesResponse,
} from './schema/74-list-config-resources.ts';
import {
  describeTopicPartitionsRequest,
  describeTopicPartitionsResponse,
} from './schema/75-describe-topic-partitions.ts';
import {
  shareGroupHeartbeatRequest,
  shareGroupHeartbeatResponse,
} from './schema/76-share-group-heartbeat.ts';
import {
  shareGroupDescribeRequest,
  shareGroupDescribeResponse,
} from './schema/77-share-group-describe.ts';
import { shareFetchRequest, shareFetchResponse } from './schema/78-share-fetch.ts';
import {
  shareAcknowledgeRequest,
  shareAcknowledgeResponse,
} from './schema/79-share-acknowledge.ts';
import {
  describeShareGroupOffsetsRequest,
  describeShareGroupOffsetsResponse,
} from './schema/90-describe-share-group-offsets.ts';
import {
  alterShareGroupOffsetsRequest,
  alterShareGroupOffsetsResponse,
} from './schema/91-alter-share-group-offsets.ts';
import {
  deleteShareGroupOffsetsRequest,
  deleteShareGroupOffsetsResponse,
} from './schema/92-delete-share-group-offsets.ts';
import type { MessageTable } from './schema-types.ts';

export interface ApiTables {
  readonly request: MessageTable & { readonly apiKey: number };
  readonly response: MessageTable & { readonly apiKey: number };
}

const tablesOfKey = new Map<number, ApiTables>([
  [ApiKey.Produce, { request: produceRequest, response: produceResponse }],
  [ApiKey.Fetch, { request: fetchRequest, response: fetchResponse }],
  [ApiKey.ListOffsets, { request: listOffsetsRequest, response: listOffsetsResponse }],
  [ApiKey.Metadata, { request: metadataRequest, response: metadataResponse }],
  [ApiKey.OffsetCommit, { request: offsetCommitRequest, response: offsetCommitResponse }],
  [ApiKey.OffsetFetch, { request: offsetFetchRequest, response: offsetFetchResponse }],
  [ApiKey.FindCoordinator, { request: findCoordinatorRequest, response: findCoordinatorResponse }],
  [ApiKey.JoinGroup, { request: joinGroupRequest, response: joinGroupResponse }],
  [ApiKey.Heartbeat, { request: heartbeatRequest, response: heartbeatResponse }],
  [ApiKey.LeaveGroup, { request: leaveGroupRequest, response: leaveGroupResponse }],
  [ApiKey.SyncGroup, { request: syncGroupRequest, response: syncGroupResponse }],
  [ApiKey.DescribeGroups, { request: describeGroupsRequest, response: describeGroupsResponse }],
  [ApiKey.ListGroups, { request: listGroupsRequest, response: listGroupsResponse }],
  [ApiKey.SaslHandshake, { request: saslHandshakeRequest, response: saslHandshakeResponse }],
  [ApiKey.ApiVersions, { request: apiVersionsRequest, response: apiVersionsResponse }],
  [ApiKey.CreateTopics, { request: createTopicsRequest, response: createTopicsResponse }],
  [ApiKey.DeleteTopics, { request: deleteTopicsRequest, response: deleteTopicsResponse }],
  [ApiKey.DeleteRecords, { request: deleteRecordsRequest, response: deleteRecordsResponse }],
  [ApiKey.InitProducerId, { request: initProducerIdRequest, response: initProducerIdResponse }],
  [
    ApiKey.OffsetForLeaderEpoch,
    { request: offsetForLeaderEpochRequest, response: offsetForLeaderEpochResponse },
  ],
  [
    ApiKey.AddPartitionsToTxn,
    { request: addPartitionsToTxnRequest, response: addPartitionsToTxnResponse },
  ],
  [ApiKey.AddOffsetsToTxn, { request: addOffsetsToTxnRequest, response: addOffsetsToTxnResponse }],
  [ApiKey.EndTxn, { request: endTxnRequest, response: endTxnResponse }],
  [ApiKey.TxnOffsetCommit, { request: txnOffsetCommitRequest, response: txnOffsetCommitResponse }],
  [ApiKey.DescribeAcls, { request: describeAclsRequest, response: describeAclsResponse }],
  [ApiKey.CreateAcls, { request: createAclsRequest, response: createAclsResponse }],
  [ApiKey.DeleteAcls, { request: deleteAclsRequest, response: deleteAclsResponse }],
  [ApiKey.DescribeConfigs, { request: describeConfigsRequest, response: describeConfigsResponse }],
  [ApiKey.AlterConfigs, { request: alterConfigsRequest, response: alterConfigsResponse }],
  [ApiKey.DescribeLogDirs, { request: describeLogDirsRequest, response: describeLogDirsResponse }],
  [
    ApiKey.SaslAuthenticate,
    { request: saslAuthenticateRequest, response: saslAuthenticateResponse },
  ],
  [
    ApiKey.CreatePartitions,
    { request: createPartitionsRequest, response: createPartitionsResponse },
  ],
  [ApiKey.DeleteGroups, { request: deleteGroupsRequest, response: deleteGroupsResponse }],
  [
    ApiKey.IncrementalAlterConfigs,
    { request: incrementalAlterConfigsRequest, response: incrementalAlterConfigsResponse },
  ],
  [ApiKey.OffsetDelete, { request: offsetDeleteRequest, response: offsetDeleteResponse }],
  [
    ApiKey.DescribeClientQuotas,
    { request: describeClientQuotasRequest, response: describeClientQuotasResponse },
  ],
  [
    ApiKey.AlterClientQuotas,
    { request: alterClientQuotasRequest, response: alterClientQuotasResponse },
  ],
  [
    ApiKey.DescribeUserScramCredentials,
    {
      request: describeUserScramCredentialsRequest,
      response: describeUserScramCredentialsResponse,
    },
  ],
  [
    ApiKey.AlterUserScramCredentials,
    { request: alterUserScramCredentialsRequest, response: alterUserScramCredentialsResponse },
  ],
  [ApiKey.DescribeQuorum, { request: describeQuorumRequest, response: describeQuorumResponse }],
  [ApiKey.DescribeCluster, { request: describeClusterRequest, response: describeClusterResponse }],
  [
    ApiKey.DescribeProducers,
    { request: describeProducersRequest, response: describeProducersResponse },
  ],
  [
    ApiKey.DescribeTransactions,
    { request: describeTransactionsRequest, response: describeTransactionsResponse },
  ],
  [
    ApiKey.ListTransactions,
    { request: listTransactionsRequest, response: listTransactionsResponse },
  ],
  [
    ApiKey.ConsumerGroupHeartbeat,
    { request: consumerGroupHeartbeatRequest, response: consumerGroupHeartbeatResponse },
  ],
  [
    ApiKey.ConsumerGroupDescribe,
    { request: consumerGroupDescribeRequest, response: consumerGroupDescribeResponse },
  ],
  [
    ApiKey.ListConfigResources,
    { request: listConfigResourcesRequest, response: listConfigResourcesResponse },
  ],
  [
    ApiKey.DescribeTopicPartitions,
    { request: describeTopicPartitionsRequest, response: describeTopicPartitionsResponse },
  ],
  [
    ApiKey.ShareGroupHeartbeat,
    { request: shareGroupHeartbeatRequest, response: shareGroupHeartbeatResponse },
  ],
  [
    ApiKey.ShareGroupDescribe,
    { request: shareGroupDescribeRequest, response: shareGroupDescribeResponse },
  ],
  [ApiKey.ShareFetch, { request: shareFetchRequest, response: shareFetchResponse }],
  [
    ApiKey.ShareAcknowledge,
    { request: shareAcknowledgeRequest, response: shareAcknowledgeResponse },
  ],
  [
    ApiKey.DescribeShareGroupOffsets,
    { request: describeShareGroupOffsetsRequest, response: describeShareGroupOffsetsResponse },
  ],
  [
    ApiKey.AlterShareGroupOffsets,
    { request: alterShareGroupOffsetsRequest, response: alterShareGroupOffsetsResponse },
  ],
  [
    ApiKey.DeleteShareGroupOffsets,
    { request: deleteShareGroupOffsetsRequest, response: deleteShareGroupOffsetsResponse },
  ],
]);

export function tablesOf(apiKey: number): ApiTables | undefined {
  return tablesOfKey.get(apiKey);
}

export function allTables(): IterableIterator<ApiTables> {
  return tablesOfKey.values();
}

/** Reads the body of a request whose API is known by number only. Throws `DecodeError`. */
export function decodeRequest(
  apiKey: number,
  version: number,
  buffer: Buffer,
  start: number,
  end: number,
): unknown {
  const tables = tablesOfKey.get(apiKey);
  if (tables === undefined) throw new DecodeError(`${apiName(apiKey)} is not known`);
  return decode(tables.request, version, buffer, start, end);
}
