/**
 * Reads message sets of magic 0 and 1, which Kafka wrote before 0.11. For tools: producing them
 * is refused (validate.ts), as in Kafka 4.
 *
 *   set     => message*
 *   message => offset int64, length int32, crc uint32 (CRC-32 of what follows it), magic int8,
 *              attributes int8, [timestamp int64, magic 1 only],
 *              keyLength int32 (-1: null), key, valueLength int32 (-1: null), value
 *
 * Attributes: compression (bits 0-2), and in magic 1 log append time (3). A compressed message
 * has a whole set as its value. Its own offset is that of the last inner message; in magic 1 the
 * inner offsets count from 0, in magic 0 they are absolute (KIP-31, KIP-32).
 */

import { type Codecs, Compression } from '../../core/compression.ts';
import { crc32 } from '../../core/crc32c.ts';
import { mendLz4HeaderChecksum } from '../../core/lz4-frame.ts';
import { BatchAttribute } from './batch-header.ts';
import { compressionName, type DecodedBatch, type DecodedRecord } from './decoded-batch.ts';
import { readInt32, readInt64 } from './integers.ts';
import { type OpenLimits, RecordsDamagedError } from './iterate.ts';

/** Offset, length, CRC, magic, attributes and the two lengths of the smallest message. */
export const legacyOverheadBytes = 26;

const crcAt = 12;
const magicAt = 16;
const attributesAt = 17;
const timestampAt = 18;

interface Message {
  offset: number;
  crc: number;
  magic: number;
  attributes: number;
  timestamp: number;
  key: Buffer | null;
  value: Buffer | null;
}

/** One message of a set, of `bytes` exactly: a batch of one, or of those inside it. */
export function decodeLegacyMessage(bytes: Buffer, limits: OpenLimits): DecodedBatch {
  const outer = readMessage(bytes);
  const compression = compressionName(outer.attributes & BatchAttribute.compressionMask);
  const records =
    compression === 'none' ? [toRecord(outer)] : innerRecords(outer, compression, limits);
  return {
    magic: outer.magic,
    compression,
    timestampType: timestampType(outer),
    baseOffset: records[0]?.offset ?? outer.offset,
    lastOffset: outer.offset,
    sizeInBytes: bytes.length,
    crc: outer.crc,
    maxTimestamp: outer.timestamp,
    records,
  };
}

function readMessage(bytes: Buffer): Message {
  const magic = bytes[magicAt]!;
  const crc = readInt32(bytes, crcAt) >>> 0;
  const computed = crc32(bytes.subarray(magicAt));
  if (crc !== computed) {
    throw new RecordsDamagedError(
      `Record is corrupt (stored crc = ${crc}, computed crc = ${computed})`,
    );
  }
  const keyAt = magic === 0 ? timestampAt : timestampAt + 8;
  const key = readBytes(bytes, keyAt);
  const value = readBytes(bytes, key.end);
  if (value.end !== bytes.length) {
    throw new RecordsDamagedError(`Message of ${bytes.length} bytes holds ${value.end}`);
  }
  return {
    offset: readInt64(bytes, 0),
    crc,
    magic,
    attributes: bytes[attributesAt]!,
    timestamp: magic === 0 ? -1 : readInt64(bytes, timestampAt),
    key: key.bytes,
    value: value.bytes,
  };
}

function readBytes(bytes: Buffer, at: number): { bytes: Buffer | null; end: number } {
  const start = at + 4;
  const length = start > bytes.length ? 0 : readInt32(bytes, at);
  const end = length < 0 ? start : start + length;
  if (end > bytes.length) throw new RecordsDamagedError('Message is cut short');
  return { bytes: length < 0 ? null : bytes.subarray(start, end), end };
}

function innerRecords(
  outer: Message,
  compression: keyof Codecs,
  limits: OpenLimits,
): DecodedRecord[] {
  if (outer.value === null) throw new RecordsDamagedError('Compressed message without a value');
  const packed =
    compression === 'lz4' && outer.magic === 0 ? mendLz4HeaderChecksum(outer.value) : outer.value;
  const set = limits.codecs[compression].decompress(packed, limits.openedBytesMax);
  const messages: Message[] = [];
  for (let at = 0; at < set.length; ) {
    const length = set.length - at < legacyOverheadBytes ? -1 : readInt32(set, at + 8) + 12;
    if (length < legacyOverheadBytes || length > set.length - at) {
      throw new RecordsDamagedError('Inner message is cut short');
    }
    const inner = readMessage(set.subarray(at, at + length));
    if (inner.magic !== outer.magic) throw new RecordsDamagedError('Inner message of other magic');
    if ((inner.attributes & BatchAttribute.compressionMask) !== Compression.none) {
      throw new RecordsDamagedError('Compressed message inside a compressed message');
    }
    messages.push(inner);
    at += length;
  }
  const last = messages[messages.length - 1];
  if (last === undefined) throw new RecordsDamagedError('Compressed message without any inside');
  const base = outer.magic === 0 ? 0 : outer.offset - last.offset;
  const isLogAppendTime = timestampType(outer) === 'LogAppendTime';
  return messages.map((message) => ({
    ...toRecord(message),
    offset: base + message.offset,
    timestamp: isLogAppendTime ? outer.timestamp : message.timestamp,
  }));
}

function timestampType(message: Message): DecodedBatch['timestampType'] {
  if (message.magic === 0) return 'NoTimestampType';
  const logAppendTime = message.attributes & BatchAttribute.logAppendTime;
  return logAppendTime === 0 ? 'CreateTime' : 'LogAppendTime';
}

function toRecord(message: Message): DecodedRecord {
  return {
    offset: message.offset,
    timestamp: message.timestamp,
    sequence: -1,
    key: message.key,
    value: message.value,
    headers: [],
  };
}
