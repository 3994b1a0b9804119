/** Topic => lane => the member that a plan gives it to; of two that it names the later one. */
export function ownersByTopic(
  assignments: ReadonlyMap<string, ReadonlyMap<string, readonly number[]> | null>,
): Map<string, Map<number, string>> {
  const owners = new Map<string, Map<number, string>>();
  for (const [memberId, topics] of assignments) {
    for (const [topicName, lanes] of topics ?? []) {
      const byLane = owners.get(topicName) ?? new Map<number, string>();
      owners.set(topicName, byLane);
      for (const lane of lanes) byLane.set(lane, memberId);
    }
  }
  return owners;
}
