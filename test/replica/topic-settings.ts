/** Of a topic for which nothing was configured, with no retention. */
export const topicSettings = {
  messageBytesMax: 1_000_000,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: Number.MAX_SAFE_INTEGER,
  timestampAfterMaxMs: Number.MAX_SAFE_INTEGER,
  compressionType: 'producer',
  minInsyncReplicas: 1,
  retentionMs: -1,
  retentionBytes: -1,
} as const;
