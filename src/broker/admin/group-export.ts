import { ByteReader, ByteWriter } from '../../core/bytes.ts';
import type { CommittedOffset } from '../../state/commands.ts';
import type { GrantRuns } from '../../state/keyed/grant-runs.ts';
import { Ledger } from '../../state/keyed/ledger.ts';
import type { Topic } from '../../state/topics.ts';
import type { Broker } from '../broker.ts';
import { joined, opened } from './json-pieces.ts';

/**
 * All that the journal knows of a group: offsets of the log, and of each topic in keyed delivery
 * what is finished, who was given what, and what failed. As JSON in pieces, for it may be long.
 */
export function* groupExport(broker: Broker, groupId: string): Iterable<string> {
  const { state } = broker.replica;
  // Copies, so that all of it is of one moment, however long it takes to send.
  const ledgers = [...state.keyed.ofGroup(groupId)].map(copyOf);
  const offsets = [...(state.offsets.of(groupId) ?? [])];
  yield opened({ group: groupId, journalIndex: state.appliedIndex }, 'committedOffsets');
  yield* joined(committedOffsets(broker, offsets));
  yield '],"keyed":[';
  let isFirst = true;
  for (const ledger of ledgers) {
    const topic = broker.topics.byId(ledger.topicId);
    if (topic === undefined) continue;
    if (!isFirst) yield ',';
    isFirst = false;
    yield* ledgerExport(broker, topic, ledger);
  }
  yield ']}\n';
}

function* committedOffsets(
  broker: Broker,
  offsets: readonly (readonly [number, CommittedOffset])[],
): Iterable<object> {
  const { partitions } = broker.replica.state.topics;
  for (const [partition, { offset, metadata }] of offsets) {
    const topic = partitions.topic(partition);
    if (topic === undefined) continue;
    yield { topic: topic.name, partition: partitions.index(partition), offset, metadata };
  }
}

function copyOf(ledger: Ledger): Ledger {
  const writer = new ByteWriter();
  ledger.write(writer);
  return Ledger.read(new ByteReader(writer.finish()));
}

/** Stored partition => index in its topic. */
type Indexes = ReadonlyMap<number, number>;

function* ledgerExport(broker: Broker, topic: Topic, ledger: Ledger): Iterable<string> {
  const { slot, laneBase, hasFinished } = ledger;
  const indexes = new Map(topic.partitions.map((partition, index) => [partition, index]));
  const head = { topic: topic.name, topicId: topic.id, slot, laneBase, hasFinished };
  yield opened(head, 'partitions');
  for (const [index, partition] of topic.partitions.entries()) {
    yield `${index === 0 ? '' : ','}${partitionHead(broker, ledger, index, partition)}`;
    yield* joined(ledger.finished(partition).ranges());
    yield ']}';
  }
  yield '],"lanes":[';
  let isFirst = true;
  for (const [lane, { end, isOwned, ranges }] of ledger.lanes) {
    yield `${isFirst ? '' : ','}{"lane":${lane},"end":${end},"isOwned":${isOwned},"ranges":[`;
    isFirst = false;
    for (const [i, range] of ranges.entries()) {
      const { memberId: member, start, end: rangeEnd, grants } = range;
      const one = opened({ member, start, end: rangeEnd }, 'grants');
      yield `${i === 0 ? '' : ','}${one}`;
      yield* joined(grantsOf(indexes, grants, start, rangeEnd));
      yield ']}';
    }
    yield ']}';
  }
  yield '],"trials":[';
  yield* joined(trialsOf(indexes, ledger));
  yield ']}';
}

function partitionHead(broker: Broker, ledger: Ledger, index: number, partition: number): string {
  const { partitions } = broker.replica.state.topics;
  const isThere = partitions.exists(partition);
  const { low, above } = ledger.finished(partition);
  const one = {
    partition: index,
    // The topic may have been deleted since the first piece.
    logStart: isThere ? partitions.logStart(partition) : null,
    end: isThere ? partitions.end(partition) : null,
    low,
    finishedAbove: above,
  };
  return opened(one, 'finished');
}

/** Neighbouring lane numbers that are neighbouring offsets of one partition. */
function grantsOf(indexes: Indexes, grants: GrantRuns, start: number, end: number) {
  const found: object[] = [];
  grants.forEach(start, end, (n, count, partition, offset) => {
    found.push({ n, count, partition: indexes.get(partition), offset });
  });
  return found;
}

function* trialsOf(indexes: Indexes, { trials }: Ledger): Iterable<object> {
  for (const [key, trial] of trials) {
    const [partition, offset] = key.split(':').map(Number);
    yield {
      partition: indexes.get(partition!),
      offset,
      attempts: trial.quarters / 4,
      inHandLimit: trial.limit,
      firstFailure: new Date(trial.firstMs).toISOString(),
      lastFailure: new Date(trial.lastMs).toISOString(),
      due: new Date(trial.dueMs).toISOString(),
      reason: trial.reason,
    };
  }
}
