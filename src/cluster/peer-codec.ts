import { ByteReader, ByteWriter } from '../core/bytes.ts';
import {
  batchIsSound,
  type Entry,
  entryHeadBytes,
  readEntry,
  writeEntryHead,
} from '../log/format.ts';
import type { ConfigurationEntry } from '../raft/membership.ts';
import type { Append, Message } from '../raft/messages.ts';
import type { TermRun } from '../raft/term-log.ts';
import { decodeConfiguration } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';

/**
 * What nodes of a cluster tell each other, one message a frame:
 *
 *   frame  = u8 kind | from string | to string | term f64 | what the kind has, in this order
 *   append = prevIndex f64 | prevTerm f64 | commitIndex f64 | sentMs f64 | count | entry*
 *
 * An entry is as in the journal (log/format.ts), with its checksums, which the receiver verifies:
 * it stores what it gets.
 */
const Kind = {
  preVote: 1,
  preVoteReply: 2,
  vote: 3,
  voteReply: 4,
  append: 5,
  appendReply: 6,
  appendRejected: 7,
  heartbeat: 8,
  heartbeatReply: 9,
  timeoutNow: 10,
  termIsOver: 11,
} as const satisfies Record<Message['kind'], number>;

/** Frames of other kinds are numbered from here on. */
export const firstOtherKind = 32;

export interface ReceivedMessage {
  readonly message: Message;
  /** Of an append. */
  readonly entries: readonly Entry[];
}

export function encodeMessage(message: Message, entries: readonly Entry[]): Buffer[] {
  const writer = new ByteWriter(160).u8(Kind[message.kind]);
  writer.string(message.from).string(message.to).f64(message.term);
  switch (message.kind) {
    case 'preVote':
      writer.f64(message.lastIndex).f64(message.lastTerm);
      break;
    case 'vote':
      writer
        .f64(message.lastIndex)
        .f64(message.lastTerm)
        .u8(message.isTransfer ? 1 : 0);
      break;
    case 'preVoteReply':
    case 'voteReply':
      writer.u8(message.isGranted ? 1 : 0);
      break;
    case 'append': {
      const { prevIndex, prevTerm, commitIndex, sentMs } = message;
      writer.f64(prevIndex).f64(prevTerm).f64(commitIndex).f64(sentMs).uvarint(entries.length);
      return [writer.finish(), ...encodeEntries(entries)];
    }
    case 'appendReply':
      writer.f64(message.matched).f64(message.sentMs);
      break;
    case 'appendRejected':
      writer.f64(message.prevIndex).f64(message.hintIndex).f64(message.hintTerm);
      writer.f64(message.sentMs);
      break;
    case 'heartbeat':
      writer.f64(message.commitIndex).f64(message.sentMs);
      break;
    case 'heartbeatReply':
      writer.f64(message.sentMs).u8(message.hasEntries ? 1 : 0);
      break;
    case 'timeoutNow':
    case 'termIsOver':
      break;
  }
  return [writer.finish()];
}

function encodeEntries(entries: readonly Entry[]): Buffer[] {
  let headBytes = 0;
  for (const entry of entries) headBytes += entryHeadBytes(entry);
  const heads = Buffer.allocUnsafe(headBytes);
  const pieces: Buffer[] = [];
  let [from, at] = [0, 0];
  for (const entry of entries) {
    at = writeEntryHead(heads, at, entry);
    if (entry.batches.length === 0) continue;
    pieces.push(heads.subarray(from, at), ...entry.batches);
    from = at;
  }
  if (at > from) pieces.push(heads.subarray(from, at));
  return pieces;
}

/** Throws a RangeError for anything that is not a whole and sound message. */
export function decodeMessage(frame: Buffer): ReceivedMessage {
  const reader = new ByteReader(frame);
  const kind = reader.u8();
  const envelope = { from: reader.string(), to: reader.string(), term: readPlace(reader) };
  const none: readonly Entry[] = [];
  const alone = (message: Message): ReceivedMessage => ({ message, entries: none });
  switch (kind) {
    case Kind.preVote:
      return alone({ kind: 'preVote', ...envelope, ...readLast(reader) });
    case Kind.vote:
      return alone({
        ...{ kind: 'vote', ...envelope, ...readLast(reader) },
        isTransfer: reader.u8() === 1,
      });
    case Kind.preVoteReply:
      return alone({ kind: 'preVoteReply', ...envelope, isGranted: reader.u8() === 1 });
    case Kind.voteReply:
      return alone({ kind: 'voteReply', ...envelope, isGranted: reader.u8() === 1 });
    case Kind.append:
      return readAppend(frame, reader, envelope);
    case Kind.appendReply:
      return alone({
        ...{ kind: 'appendReply', ...envelope },
        ...{ matched: readPlace(reader), sentMs: reader.f64() },
      });
    case Kind.appendRejected:
      return alone({
        ...{ kind: 'appendRejected', ...envelope, prevIndex: readPlace(reader) },
        ...{ hintIndex: readPlace(reader), hintTerm: readPlace(reader), sentMs: reader.f64() },
      });
    case Kind.heartbeat:
      return alone({
        ...{ kind: 'heartbeat', ...envelope },
        ...{ commitIndex: readPlace(reader), sentMs: reader.f64() },
      });
    case Kind.heartbeatReply:
      return alone({
        ...{ kind: 'heartbeatReply', ...envelope },
        ...{ sentMs: reader.f64(), hasEntries: reader.u8() === 1 },
      });
    case Kind.timeoutNow:
      return alone({ kind: 'timeoutNow', ...envelope });
    case Kind.termIsOver:
      return alone({ kind: 'termIsOver', ...envelope });
    default:
      throw new RangeError(`a message of kind ${kind}`);
  }
}

/** An index or a term. */
function readPlace(reader: ByteReader): number {
  const value = reader.f64();
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`${value} is no place in a log`);
  return value;
}

function readLast(reader: ByteReader) {
  return { lastIndex: readPlace(reader), lastTerm: readPlace(reader) };
}

function readAppend(
  frame: Buffer,
  reader: ByteReader,
  envelope: Pick<Append, 'from' | 'to' | 'term'>,
): ReceivedMessage {
  const [prevIndex, prevTerm] = [readPlace(reader), readPlace(reader)];
  const [commitIndex, sentMs] = [readPlace(reader), reader.f64()];
  const count = reader.uvarint();
  const entries: Entry[] = [];
  const runs: TermRun[] = [];
  const configurations: ConfigurationEntry[] = [];
  let at = frame.length - reader.remaining;
  for (let index = prevIndex + 1; index <= prevIndex + count; index++) {
    const read = readEntry(frame, at, frame.length, 0);
    const isSound =
      read !== undefined && read.entry.index === index && read.entry.batches.every(batchIsSound);
    if (!isSound) throw new RangeError(`entry ${index} is damaged`);
    const { entry, end } = read;
    at = end;
    entries.push(entry);
    if (runs.at(-1)?.term !== entry.term) runs.push({ index, term: entry.term });
    if (entry.type === EntryType.members) {
      configurations.push({ index, configuration: decodeConfiguration(entry.meta) });
    }
  }
  if (at !== frame.length) throw new RangeError('bytes behind the last entry');
  const message: Append = {
    ...{ kind: 'append', ...envelope, prevIndex, prevTerm, commitIndex, sentMs },
    ...{ lastIndex: prevIndex + count, runs, configurations },
  };
  return { message, entries };
}
