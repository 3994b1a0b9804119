import { ReadPlan } from '../log/log-reader.ts';
import type { QuestionAnswer } from '../replica/stored-batches.ts';
import type { Broker } from './broker.ts';

/** An offset and the timestamp of its record; -1 and -1 where no record fits. */
export interface TimestampedOffset {
  readonly offset: number;
  readonly timestamp: number;
}

/** Why there is none. */
export type NotFound = 'damaged' | 'stopped';

const nothing: TimestampedOffset = { offset: -1, timestamp: -1 };

interface FoundExtent {
  readonly position: number;
  readonly bytes: number;
  readonly end: number;
}

/** The first record of the partition whose timestamp is `timestamp` or later. */
export async function findTimestampOffset(
  broker: Broker,
  partition: number,
  timestamp: number,
): Promise<TimestampedOffset | NotFound> {
  const logStart = broker.replica.state.topics.partitions.logStart(partition);
  let from = logStart;
  for (;;) {
    const extent = await firstWithTimestamp(broker, partition, from, timestamp);
    if (extent === undefined) return nothing;
    const found = await ask(broker, extent, timestamp, logStart);
    if (found !== null) return orNotFound(found);
    from = extent.end;
  }
}

/** The first record that has the greatest timestamp of the partition. */
export async function findMaxTimestampOffset(
  broker: Broker,
  partition: number,
): Promise<TimestampedOffset | NotFound> {
  const { partitions } = broker.replica.state.topics;
  const logStart = partitions.logStart(partition);
  // The state knows which batch it is; only once that is deleted must the others be searched.
  const base = partitions.maxTimestampBase(partition);
  const isKept = base >= logStart;
  let greatest = -1;
  let extent: FoundExtent | undefined;
  await broker.replica.journal.extents.walkLoading(
    { partition, start: { offset: isKept ? base : logStart } },
    (baseOffset, count, maxTimestamp, _epoch, position, bytes) => {
      if (maxTimestamp > greatest) {
        greatest = maxTimestamp;
        extent = { position, bytes, end: baseOffset + count };
      }
      return !isKept;
    },
  );
  if (extent === undefined) return nothing;
  const found = await ask(broker, extent, 'latest', logStart);
  return found === null ? nothing : orNotFound(found);
}

function orNotFound(
  found: Exclude<QuestionAnswer, null> | 'stopped',
): TimestampedOffset | NotFound {
  // The bound was higher when the batch was stored.
  return found === 'too large' ? 'damaged' : found;
}

async function firstWithTimestamp(
  broker: Broker,
  partition: number,
  offset: number,
  timestamp: number,
): Promise<FoundExtent | undefined> {
  let extent: FoundExtent | undefined;
  await broker.replica.journal.extents.walkLoading(
    { partition, start: { offset }, timestampMin: timestamp },
    (baseOffset, count, maxTimestamp, _epoch, position, bytes) => {
      if (maxTimestamp < timestamp) return true;
      extent = { position, bytes, end: baseOffset + count };
      return false;
    },
  );
  return extent;
}

/** Null also where the batch was deleted meanwhile. */
async function ask(
  broker: Broker,
  extent: FoundExtent,
  timestamp: number | 'latest',
  offsetMin: number,
): Promise<QuestionAnswer | 'stopped'> {
  const plan = new ReadPlan();
  plan.add(extent.position, extent.bytes);
  const read = await broker.reader.read([plan]);
  if (read === undefined) return null;
  const openedBytesMax = broker.settings['decompressed.bytes.max'];
  try {
    const question = { timestamp, offsetMin, openedBytesMax };
    return await broker.storedBatches.ask(read.pieces[0]![0]!, question);
  } finally {
    read.release();
  }
}
