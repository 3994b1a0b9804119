/**
 * The durable image of a classic group: what a coordinator needs to go on after a restart or a
 * failover without making its members rejoin. It stands in journal entries and in snapshots.
 *
 *     image    := version u8 (2), protocolType nstring, generationId uvarint,
 *                 protocolName nstring, leaderId nstring, stateTimestampMs f64,
 *                 count, count × member
 *     member   := memberId string, groupInstanceId nstring, clientId string, clientHost string,
 *                 rebalanceTimeoutMs uvarint, sessionTimeoutMs uvarint,
 *                 count, count × protocol, assignment bytes,
 *                 firstGenerationId + 1 uvarint, lastGenerationId + 1 uvarint
 *     protocol := name string, metadata bytes
 *
 * Version 1 has no generations of members. Building blocks as in core/bytes.ts. Kafka's
 * GroupMetadataValue keeps only the metadata of the chosen protocol; here all of it stays, so that
 * a later rebalance can still change the protocol.
 */

import { ByteReader, BytesError, ByteWriter } from '../core/bytes.ts';

export interface GroupProtocol {
  readonly name: string;
  readonly metadata: Buffer;
}

export interface MemberImage {
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly rebalanceTimeoutMs: number;
  readonly sessionTimeoutMs: number;
  /** In the member's order of preference. */
  readonly protocols: readonly GroupProtocol[];
  readonly assignment: Buffer;
  /** Absent in version 1, when every member was given the generation of its group. */
  readonly generations?: GivenGenerations;
}

/** The first and the last generation that a member was told of, -1 for none. */
export interface GivenGenerations {
  readonly firstGenerationId: number;
  readonly lastGenerationId: number;
}

export interface GroupImage {
  readonly protocolType: string | null;
  readonly generationId: number;
  readonly protocolName: string | null;
  readonly leaderId: string | null;
  /** Wall time at which the group came into the state that this image stands for. */
  readonly stateTimestampMs: number;
  /** Without members the group is Empty, with members Stable. */
  readonly members: readonly MemberImage[];
}

const version = 2;
const generationsSince = 2;

/** About this much is written in one slice: some 1,000 members, in a millisecond or two. */
const sliceBytes = 256 * 1024;

/** The least that a member and a protocol take, so that a wrong count cannot size anything. */
const memberBytesMin = 8;
const protocolBytesMin = 2;

/** Yields where a turn of the event loop may end. */
export function* encodeGroupImageInSlices(image: GroupImage): Generator<undefined, Buffer> {
  const writer = new ByteWriter();
  writer.u8(version);
  writer.nullableString(image.protocolType);
  writer.uvarint(image.generationId);
  writer.nullableString(image.protocolName);
  writer.nullableString(image.leaderId);
  writer.f64(image.stateTimestampMs);
  writer.uvarint(image.members.length);
  let sliceEnd = sliceBytes;
  for (const member of image.members) {
    writeMember(writer, member, image.generationId);
    if (writer.length < sliceEnd) continue;
    sliceEnd = writer.length + sliceBytes;
    yield undefined;
  }
  return writer.finish();
}

/** Throws `BytesError` on anything but a whole image. The buffers in it are views of `bytes`. */
export function decodeGroupImage(bytes: Buffer): GroupImage {
  const reader = new ByteReader(bytes);
  const found = reader.u8();
  if (found < 1 || found > version)
    throw new BytesError(`group image version ${found} is not known`);
  const protocolType = reader.nullableString();
  const generationId = reader.uvarint();
  const protocolName = reader.nullableString();
  const leaderId = reader.nullableString();
  const stateTimestampMs = reader.f64();
  const members: MemberImage[] = [];
  const count = reader.count(memberBytesMin);
  for (let i = 0; i < count; i++) members.push(readMember(reader, found));
  reader.end();
  return { protocolType, generationId, protocolName, leaderId, stateTimestampMs, members };
}

function writeMember(writer: ByteWriter, member: MemberImage, generationId: number): void {
  writer.string(member.memberId);
  writer.nullableString(member.groupInstanceId);
  writer.string(member.clientId);
  writer.string(member.clientHost);
  writer.uvarint(member.rebalanceTimeoutMs);
  writer.uvarint(member.sessionTimeoutMs);
  writer.uvarint(member.protocols.length);
  for (const protocol of member.protocols) {
    writer.string(protocol.name);
    writer.bytes(protocol.metadata);
  }
  writer.bytes(member.assignment);
  const { firstGenerationId, lastGenerationId } = member.generations ?? allIn(generationId);
  writer.uvarint(firstGenerationId + 1);
  writer.uvarint(lastGenerationId + 1);
}

function allIn(generationId: number): GivenGenerations {
  return { firstGenerationId: generationId, lastGenerationId: generationId };
}

function readMember(reader: ByteReader, found: number): MemberImage {
  const memberId = reader.string();
  const groupInstanceId = reader.nullableString();
  const clientId = reader.string();
  const clientHost = reader.string();
  const rebalanceTimeoutMs = reader.uvarint();
  const sessionTimeoutMs = reader.uvarint();
  const protocols: GroupProtocol[] = [];
  const count = reader.count(protocolBytesMin);
  for (let i = 0; i < count; i++) {
    const name = reader.string();
    protocols.push({ name, metadata: reader.bytes() });
  }
  return {
    memberId,
    groupInstanceId,
    clientId,
    clientHost,
    rebalanceTimeoutMs,
    sessionTimeoutMs,
    protocols,
    assignment: reader.bytes(),
    ...(found >= generationsSince && { generations: readGenerations(reader) }),
  };
}

function readGenerations(reader: ByteReader): GivenGenerations {
  const firstGenerationId = reader.uvarint() - 1;
  return { firstGenerationId, lastGenerationId: reader.uvarint() - 1 };
}
