/** A ConsumerProtocolSubscription as clients send it: version, topics, user data. */
export function subscription(topics: readonly string[], userData = '', version = 1): Buffer {
  const parts = [int16(version), int32(topics.length)];
  for (const topic of topics) parts.push(int16(Buffer.byteLength(topic)), Buffer.from(topic));
  parts.push(int32(Buffer.byteLength(userData)), Buffer.from(userData));
  return Buffer.concat(parts);
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
