import { ByteReader, ByteWriter } from '../core/bytes.ts';
import { type ClusterNode, readClusterNode, writeClusterNode } from '../state/commands.ts';

/** What a node says of itself to another one. */
export interface Hello {
  /** Empty while it is in none. */
  readonly clusterId: string;
  readonly node: ClusterNode;
  /** Up to which feature level its code understands entries. */
  readonly level: number;
  /** A tenant is served on this port and its offset; 0: it does not say where. */
  readonly tenantPortBase: number;
}

export function encodeHello({ clusterId, node, level, tenantPortBase }: Hello): Buffer {
  const writer = writeClusterNode(new ByteWriter(128).string(clusterId), node);
  return writer.uvarint(level).uvarint(tenantPortBase).finish();
}

/** What newer versions add behind it is passed over. */
export function decodeHello(bytes: Buffer): Hello {
  const reader = new ByteReader(bytes);
  const [clusterId, node] = [reader.string(), readClusterNode(reader)];
  // Those of the first level did not say it, and those of the second one know no tenants.
  const level = reader.remaining > 0 ? reader.uvarint() : 1;
  const tenantPortBase = reader.remaining > 0 ? reader.uvarint() : 0;
  return { clusterId, node, level, tenantPortBase };
}
