import { ReadPlan } from '../log/log-reader.ts';
import { findByTimestamp, findMaxTimestamp } from '../protocol/records/iterate.ts';
import type { Broker } from './broker.ts';

/** An offset and the timestamp of its record; -1 and -1 where no record fits. */
export interface TimestampedOffset {
  readonly offset: number;
  readonly timestamp: number;
}

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
): Promise<TimestampedOffset> {
  const logStart = broker.replica.state.topics.partitions.logStart(partition);
  let from = logStart;
  for (;;) {
    const extent = await firstWithTimestamp(broker, partition, from, timestamp);
    if (extent === undefined) return nothing;
    const found = await readBatch(broker, extent, (batch) =>
      findByTimestamp(batch, 0, timestamp, logStart, openLimits(broker)),
    );
    if (found !== null) return found;
    from = extent.end;
  }
}

/** The first record that has the greatest timestamp of the partition. */
export async function findMaxTimestampOffset(
  broker: Broker,
  partition: number,
): Promise<TimestampedOffset> {
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
  const found = await readBatch(broker, extent, (batch) =>
    findMaxTimestamp(batch, 0, openLimits(broker)),
  );
  return found ?? nothing;
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

async function readBatch<T>(
  broker: Broker,
  extent: FoundExtent,
  use: (batch: Buffer) => T,
): Promise<T | null> {
  const plan = new ReadPlan();
  plan.add(extent.position, extent.bytes);
  const read = await broker.reader.read([plan]);
  if (read === undefined) return null;
  try {
    return use(read.pieces[0]![0]!);
  } finally {
    read.release();
  }
}

function openLimits(broker: Broker) {
  return {
    codecs: broker.codecs,
    openedBytesMax: broker.settings['decompressed.bytes.max'],
  };
}
