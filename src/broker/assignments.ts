/**
 * Manual assignments of partitions to nodes. Every voter has a replica of every partition whatever
 * is asked for, so an assignment only has to name nodes that there are; the words for what is wrong
 * are Kafka's (ReplicationControlManager.validateManualPartitionAssignment).
 */

/** What is wrong with the replicas of one partition; undefined if nothing is. */
export function assignmentError(
  brokerIds: readonly number[],
  registered: readonly number[],
): string | undefined {
  if (brokerIds.length === 0) {
    return 'The manual partition assignment includes an empty replica list.';
  }
  const sorted = [...brokerIds].sort((a, b) => a - b);
  const unknown = sorted.find((id) => !registered.includes(id));
  if (unknown !== undefined) {
    return (
      `The manual partition assignment includes broker ${unknown}, but no such broker is ` +
      'registered.'
    );
  }
  const twice = sorted.find((id, i) => id === sorted[i - 1]);
  if (twice !== undefined) {
    return `The manual partition assignment includes the broker ${twice} more than once.`;
  }
  return undefined;
}
