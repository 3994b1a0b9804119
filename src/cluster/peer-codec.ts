import { ByteReader, ByteWriter } from '../core/bytes.ts';
import { decodeEntries, encodeEntries } from '../log/entry-list.ts';
import type { Entry } from '../log/format.ts';
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
 * Entries are as in log/entry-list.ts.
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
  snapshotOffer: 12,
} as const satisfies Record<Message['kind'], number>;

/** A frame of this kind holds one for the group of a tenant: `u8 kind | tenant | frame`. */
export const tenantFrameKind = 31;
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
      // Older versions know no tenants, whose groups alone doze.
      if (message.isDozing) writer.u8(1);
      break;
    case 'heartbeatReply':
      writer.f64(message.sentMs).u8(message.hasEntries ? 1 : 0);
      break;
    case 'snapshotOffer':
      writer.f64(message.base.index).f64(message.base.term).f64(message.sentMs);
      break;
    case 'timeoutNow':
    case 'termIsOver':
      break;
  }
  return [writer.finish()];
}

/** Throws a RangeError for anything that is not a whole and sound message. */
export function decodeMessage(frame: Buffer): ReceivedMessage {
  const reader = new ByteReader(frame);
  const kind = reader.u8();
  const envelope = { from: reader.string(), to: reader.string(), term: reader.wholeF64() };
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
        ...{ matched: reader.wholeF64(), sentMs: reader.f64() },
      });
    case Kind.appendRejected:
      return alone({
        ...{ kind: 'appendRejected', ...envelope, prevIndex: reader.wholeF64() },
        ...{ hintIndex: reader.wholeF64(), hintTerm: reader.wholeF64(), sentMs: reader.f64() },
      });
    case Kind.heartbeat:
      return alone({
        ...{ kind: 'heartbeat', ...envelope },
        ...{ commitIndex: reader.wholeF64(), sentMs: reader.f64() },
        isDozing: reader.remaining > 0 && reader.u8() === 1,
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
    case Kind.snapshotOffer:
      return alone({
        ...{ kind: 'snapshotOffer', ...envelope },
        ...{ base: { index: reader.wholeF64(), term: reader.wholeF64() }, sentMs: reader.f64() },
      });
    default:
      throw new RangeError(`a message of kind ${kind}`);
  }
}

function readLast(reader: ByteReader) {
  return { lastIndex: reader.wholeF64(), lastTerm: reader.wholeF64() };
}

function readAppend(
  frame: Buffer,
  reader: ByteReader,
  envelope: Pick<Append, 'from' | 'to' | 'term'>,
): ReceivedMessage {
  const [prevIndex, prevTerm] = [reader.wholeF64(), reader.wholeF64()];
  const [commitIndex, sentMs] = [reader.wholeF64(), reader.f64()];
  const count = reader.uvarint();
  const entries = decodeEntries(frame, frame.length - reader.remaining, count);
  const runs: TermRun[] = [];
  const configurations: ConfigurationEntry[] = [];
  for (const [i, { index, term, type, meta }] of entries.entries()) {
    if (index !== prevIndex + 1 + i) throw new RangeError(`entry ${index} after ${prevIndex + i}`);
    if (runs.at(-1)?.term !== term) runs.push({ index, term });
    if (type === EntryType.members) {
      configurations.push({ index, configuration: decodeConfiguration(meta) });
    }
  }
  const message: Append = {
    ...{ kind: 'append', ...envelope, prevIndex, prevTerm, commitIndex, sentMs },
    ...{ lastIndex: prevIndex + count, runs, configurations },
  };
  return { message, entries };
}
