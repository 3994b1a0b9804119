import type { ByteReader, ByteWriter } from '../core/bytes.ts';
import {
  type CommittedOffset,
  type OffsetsCommitted,
  type OffsetsDeleted,
  readCommittedOffset,
  writeCommittedOffset,
} from './commands.ts';

/** Committed offsets by group and partition number. */
export class OffsetTable {
  readonly #groups = new Map<string, Map<number, CommittedOffset>>();

  groups(): IterableIterator<string> {
    return this.#groups.keys();
  }
  has(groupId: string): boolean {
    return this.#groups.has(groupId);
  }
  of(groupId: string): ReadonlyMap<number, CommittedOffset> | undefined {
    return this.#groups.get(groupId);
  }
  get(groupId: string, partition: number): CommittedOffset | undefined {
    return this.#groups.get(groupId)?.get(partition);
  }

  commit(committed: OffsetsCommitted): void {
    const offsets = this.#groups.get(committed.groupId) ?? new Map<number, CommittedOffset>();
    this.#groups.set(committed.groupId, offsets);
    for (const [partition, offset] of committed.offsets) offsets.set(partition, offset);
  }

  delete(deleted: OffsetsDeleted): void {
    const offsets = this.#groups.get(deleted.groupId);
    for (const partition of deleted.partitions) offsets?.delete(partition);
    if (offsets?.size === 0) this.#groups.delete(deleted.groupId);
  }

  deleteGroup(groupId: string): void {
    this.#groups.delete(groupId);
  }

  removePartitions(partitions: readonly number[]): void {
    for (const [groupId, offsets] of this.#groups) {
      for (const partition of partitions) offsets.delete(partition);
      if (offsets.size === 0) this.#groups.delete(groupId);
    }
  }

  /** The offsets of one group, for a snapshot. */
  writeGroup(writer: ByteWriter, groupId: string): void {
    const offsets = this.#groups.get(groupId)!;
    writer.string(groupId).uvarint(offsets.size);
    for (const [partition, offset] of offsets) {
      writer.uvarint(partition);
      writeCommittedOffset(writer, offset);
    }
  }

  readGroup(reader: ByteReader): void {
    const groupId = reader.string();
    const offsets = new Map<number, CommittedOffset>();
    for (let left = reader.count(); left > 0; left--) {
      offsets.set(reader.uvarint(), readCommittedOffset(reader));
    }
    this.#groups.set(groupId, offsets);
  }
}
