/**
 * Manual assignments of partitions to nodes. Every partition has its one replica on this node, so
 * there is one that is right; the words for the others are Kafka's
 * (ReplicationControlManager.validateManualPartitionAssignment).
 */

/** What is wrong with the replicas of one partition; undefined if nothing is. */
export function assignmentError(brokerIds: readonly number[], nodeId: number): string | undefined {
  if (brokerIds.length === 0) {
    return 'The manual partition assignment includes an empty replica list.';
  }
  const unknown = brokerIds.find((id) => id !== nodeId);
  if (unknown !== undefined) {
    return (
      `The manual partition assignment includes broker ${unknown}, but no such broker is ` +
      'registered.'
    );
  }
  if (brokerIds.length > 1) {
    return `The manual partition assignment includes the broker ${nodeId} more than once.`;
  }
  return undefined;
}
