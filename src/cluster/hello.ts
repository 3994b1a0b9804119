import { ByteReader, ByteWriter } from '../core/bytes.ts';
import { type ClusterNode, readClusterNode, writeClusterNode } from '../state/commands.ts';

/** What a node says of itself to another one. */
export interface Hello {
  /** Empty while it is in none. */
  readonly clusterId: string;
  readonly node: ClusterNode;
  /** Up to which feature level its code understands entries. */
  readonly level: number;
}

export function encodeHello({ clusterId, node, level }: Hello): Buffer {
  return writeClusterNode(new ByteWriter(128).string(clusterId), node).uvarint(level).finish();
}

/** What newer versions add behind it is passed over. */
export function decodeHello(bytes: Buffer): Hello {
  const reader = new ByteReader(bytes);
  const [clusterId, node] = [reader.string(), readClusterNode(reader)];
  // Those of the first level did not say it.
  return { clusterId, node, level: reader.remaining > 0 ? reader.uvarint() : 1 };
}
