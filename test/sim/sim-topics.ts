/**
 * Partitions of each topic of a simulated cluster. The second one is in keyed delivery; nobody
 * consumes the third one, to which producers send that do not wait for the other nodes.
 */
export const topics = { orders: 2, chat: 3, hasty: 1 } as const;
export type TopicName = keyof typeof topics;
/** Those that groups consume. */
export type ConsumedTopic = Exclude<TopicName, 'hasty'>;
