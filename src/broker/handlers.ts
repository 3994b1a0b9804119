import { produce } from './00-produce.ts';
import { fetch } from './01-fetch.ts';
import { listOffsets } from './02-list-offsets.ts';
import { metadata } from './03-metadata.ts';
import { offsetCommit } from './08-offset-commit.ts';
import { offsetFetch } from './09-offset-fetch.ts';
import { findCoordinator } from './10-find-coordinator.ts';
import { joinGroup } from './11-join-group.ts';
import { heartbeat } from './12-heartbeat.ts';
import { leaveGroup } from './13-leave-group.ts';
import { syncGroup } from './14-sync-group.ts';
import { describeGroups } from './15-describe-groups.ts';
import { listGroups } from './16-list-groups.ts';
import { apiVersions } from './18-api-versions.ts';
import { createTopics } from './19-create-topics.ts';
import { deleteTopics } from './20-delete-topics.ts';
import { deleteRecords } from './21-delete-records.ts';
import { initProducerId } from './22-init-producer-id.ts';
import { offsetForLeaderEpoch } from './23-offset-for-leader-epoch.ts';
import { describeConfigs } from './32-describe-configs.ts';
import { alterConfigs } from './33-alter-configs.ts';
import { describeLogDirs } from './35-describe-log-dirs.ts';
import { createPartitions } from './37-create-partitions.ts';
import { deleteGroups } from './42-delete-groups.ts';
import { incrementalAlterConfigs } from './44-incremental-alter-configs.ts';
import { offsetDelete } from './47-offset-delete.ts';
import { describeQuorum } from './55-describe-quorum.ts';
import { describeCluster } from './60-describe-cluster.ts';
import { describeProducers } from './61-describe-producers.ts';
import { listConfigResources } from './74-list-config-resources.ts';
import { describeTopicPartitions } from './75-describe-topic-partitions.ts';
import type { Handler } from './handler.ts';

/** Every API that is served. ApiVersions tells clients of exactly these. */
export const handlers: ReadonlyMap<number, Handler> = new Map(
  [
    produce,
    fetch,
    listOffsets,
    metadata,
    offsetCommit,
    offsetFetch,
    findCoordinator,
    joinGroup,
    heartbeat,
    leaveGroup,
    syncGroup,
    describeGroups,
    listGroups,
    apiVersions,
    createTopics,
    deleteTopics,
    deleteRecords,
    initProducerId,
    offsetForLeaderEpoch,
    describeConfigs,
    alterConfigs,
    describeLogDirs,
    createPartitions,
    deleteGroups,
    incrementalAlterConfigs,
    offsetDelete,
    describeQuorum,
    describeCluster,
    describeProducers,
    listConfigResources,
    describeTopicPartitions,
  ].map((handler) => [handler.apiKey, handler]),
);
