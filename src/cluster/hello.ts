import { ByteReader, ByteWriter } from '../core/bytes.ts';
import { type ClusterNode, readClusterNode, writeClusterNode } from '../state/commands.ts';

/** What a node says of itself to another one. */
export interface Hello {
  /** Empty while it is in none. */
  readonly clusterId: string;
  readonly node: ClusterNode;
}

export function encodeHello({ clusterId, node }: Hello): Buffer {
  return writeClusterNode(new ByteWriter(128).string(clusterId), node).finish();
}

/** What newer versions add behind it is passed over. */
export function decodeHello(bytes: Buffer): Hello {
  const reader = new ByteReader(bytes);
  return { clusterId: reader.string(), node: readClusterNode(reader) };
}
