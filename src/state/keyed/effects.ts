import { ByteReader, BytesError, ByteWriter } from '../../core/bytes.ts';

/**
 * What happens to the keyed delivery of one topic to one group, as journal entries carry it. Lane
 * numbers are those of `ledger.ts`, partitions are stored ones.
 */
export type KeyedEffect =
  /** The group gets a slot of the topic; each partition starts at its offset. */
  | {
      readonly kind: 'opened';
      readonly slot: number;
      /** Below this, lane numbers were used before, by whoever had the slot. */
      readonly laneBase: number;
      readonly starts: readonly (readonly [partition: number, offset: number])[];
    }
  /** The slot is free again, and everything about it forgotten. */
  | { readonly kind: 'closed' }
  /** A lane gets an owner: a new range, which begins one above the lane's end. */
  | { readonly kind: 'rangeOpened'; readonly lane: number; readonly memberId: string }
  /** A lane has no owner any more. */
  | { readonly kind: 'rangeClosed'; readonly lane: number }
  /** The next records of the lane's present range. */
  | {
      readonly kind: 'granted';
      readonly lane: number;
      /** Count, partition, offset; three numbers a run. */
      readonly runs: readonly number[];
    }
  /** Grants `[from, to)` of a lane are done with. */
  | { readonly kind: 'finished'; readonly lane: number; readonly from: number; readonly to: number }
  /** Grants `[from, to)` of a lane are taken back. */
  | { readonly kind: 'returned'; readonly lane: number; readonly from: number; readonly to: number }
  /**
   * Grants of a lane's present range from `from` on are taken back of which nobody was told: their
   * numbers are used again.
   */
  | { readonly kind: 'withdrawn'; readonly lane: number; readonly from: number }
  /** Offsets that nobody will get: dead letters, deleted records, gaps. */
  | {
      readonly kind: 'skipped';
      readonly partition: number;
      readonly from: number;
      readonly to: number;
    }
  /** What a record's failed deliveries came to; null: they are forgotten. */
  | {
      readonly kind: 'tried';
      readonly partition: number;
      readonly offset: number;
      readonly trial: Trial | null;
    }
  /** An operator moves the group: the partition begins anew at this offset. */
  | { readonly kind: 'reset'; readonly partition: number; readonly offset: number };

/** Failed deliveries of one record. */
export interface Trial {
  /** In quarters: leaving the group with the record alone in hand weighs one, all else four. */
  readonly quarters: number;
  /** How many records its member may have in hand along with it; 0: no limit. */
  readonly limit: number;
  /** Wall times of the first delivery that failed and of the last one. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** Wall time before which it is not delivered again. */
  readonly dueMs: number;
  readonly reason: string;
}

export interface KeyedChange {
  readonly groupId: string;
  readonly topicId: string;
  readonly effects: readonly KeyedEffect[];
  /** When dead letters that ride along were appended, wall time. */
  readonly appendedMs: number;
}

const Kind = {
  opened: 1,
  closed: 2,
  rangeOpened: 3,
  rangeClosed: 4,
  granted: 5,
  finished: 6,
  returned: 7,
  skipped: 8,
  tried: 9,
  reset: 10,
  withdrawn: 11,
} as const;

/**
 *     meta   := groupId string, topicId raw 16, appendedMs f64, count, count × effect
 *     effect := kind u8, its fields in the order of their declaration
 */
export function encodeKeyedChange(change: KeyedChange): Buffer {
  const writer = new ByteWriter(64 + change.effects.length * 24);
  writer.string(change.groupId).raw(Buffer.from(change.topicId, 'hex')).f64(change.appendedMs);
  writer.uvarint(change.effects.length);
  for (const effect of change.effects) writeEffect(writer, effect);
  return writer.finish();
}

export function decodeKeyedChange(meta: Buffer): KeyedChange {
  const reader = new ByteReader(meta);
  const groupId = reader.string();
  const topicId = reader.raw(16).toString('hex');
  const appendedMs = reader.f64();
  const effects: KeyedEffect[] = [];
  for (let left = reader.count(); left > 0; left--) effects.push(readEffect(reader));
  reader.end();
  return { groupId, topicId, effects, appendedMs };
}

function writeEffect(writer: ByteWriter, effect: KeyedEffect): void {
  writer.u8(Kind[effect.kind]);
  switch (effect.kind) {
    case 'opened':
      writer.uvarint(effect.slot).uvarint(effect.laneBase).uvarint(effect.starts.length);
      for (const [partition, offset] of effect.starts) writer.uvarint(partition).uvarint(offset);
      return;
    case 'closed':
      return;
    case 'rangeOpened':
      writer.uvarint(effect.lane).string(effect.memberId);
      return;
    case 'rangeClosed':
      writer.uvarint(effect.lane);
      return;
    case 'granted':
      writer.uvarint(effect.lane).uvarint(effect.runs.length);
      for (const value of effect.runs) writer.uvarint(value);
      return;
    case 'finished':
    case 'returned':
      writer.uvarint(effect.lane).uvarint(effect.from).uvarint(effect.to);
      return;
    case 'withdrawn':
      writer.uvarint(effect.lane).uvarint(effect.from);
      return;
    case 'skipped':
      writer.uvarint(effect.partition).uvarint(effect.from).uvarint(effect.to);
      return;
    case 'tried':
      writer.uvarint(effect.partition).uvarint(effect.offset);
      writer.u8(effect.trial === null ? 0 : 1);
      if (effect.trial !== null) writeTrial(writer, effect.trial);
      return;
    case 'reset':
      writer.uvarint(effect.partition).uvarint(effect.offset);
      return;
  }
}

function readEffect(reader: ByteReader): KeyedEffect {
  const kind = reader.u8();
  switch (kind) {
    case Kind.opened: {
      const slot = reader.uvarint();
      const laneBase = reader.uvarint();
      const starts = Array.from(
        { length: reader.count(2) },
        () => [reader.uvarint(), reader.uvarint()] as const,
      );
      return { kind: 'opened', slot, laneBase, starts };
    }
    case Kind.closed:
      return { kind: 'closed' };
    case Kind.rangeOpened:
      return { kind: 'rangeOpened', lane: reader.uvarint(), memberId: reader.string() };
    case Kind.rangeClosed:
      return { kind: 'rangeClosed', lane: reader.uvarint() };
    case Kind.granted: {
      const lane = reader.uvarint();
      const runs = Array.from({ length: reader.count() }, () => reader.uvarint());
      if (runs.length % 3 !== 0) throw new BytesError('a run has three numbers');
      return { kind: 'granted', lane, runs };
    }
    case Kind.finished:
      return { kind: 'finished', ...readLaneNumbers(reader) };
    case Kind.returned:
      return { kind: 'returned', ...readLaneNumbers(reader) };
    case Kind.withdrawn:
      return { kind: 'withdrawn', lane: reader.uvarint(), from: reader.uvarint() };
    case Kind.skipped: {
      const partition = reader.uvarint();
      return { kind: 'skipped', partition, from: reader.uvarint(), to: reader.uvarint() };
    }
    case Kind.tried: {
      const partition = reader.uvarint();
      const offset = reader.uvarint();
      const trial = reader.u8() === 0 ? null : readTrial(reader);
      return { kind: 'tried', partition, offset, trial };
    }
    case Kind.reset:
      return { kind: 'reset', partition: reader.uvarint(), offset: reader.uvarint() };
    default:
      throw new BytesError(`effect ${kind} of keyed delivery is not known`);
  }
}

function readLaneNumbers(reader: ByteReader) {
  return { lane: reader.uvarint(), from: reader.uvarint(), to: reader.uvarint() };
}

export function writeTrial(writer: ByteWriter, trial: Trial): void {
  writer.uvarint(trial.quarters).uvarint(trial.limit);
  writer.f64(trial.firstMs).f64(trial.lastMs).f64(trial.dueMs).string(trial.reason);
}

export function readTrial(reader: ByteReader): Trial {
  return {
    quarters: reader.uvarint(),
    limit: reader.uvarint(),
    firstMs: reader.f64(),
    lastMs: reader.f64(),
    dueMs: reader.f64(),
    reason: reader.string(),
  };
}
