/**
 * The leader epoch of every partition while a term lasts. Terms begin at 1, leader epochs at 0 as
 * in Kafka: clients (franz-go's tests among them) take 0 for the epoch of a new partition.
 */
export function leaderEpochOf(term: number): number {
  return term - 1;
}
