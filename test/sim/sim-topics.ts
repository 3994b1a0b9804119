/** Partitions of each topic of a simulated cluster. The second one is in keyed delivery. */
export const topics = { orders: 2, chat: 3 } as const;
export type TopicName = keyof typeof topics;
