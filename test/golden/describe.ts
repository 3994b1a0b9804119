import { ByteWriter } from '../../src/core/bytes.ts';
import { codecs } from '../../src/core/codecs.ts';
import { decodeGroupImage } from '../../src/groups/group-image.ts';
import { LogReader, ReadPlan } from '../../src/log/log-reader.ts';
import { decodeBatches } from '../../src/protocol/records/decode.ts';
import type { Replica } from '../../src/replica/replica.ts';

/** Everything that a data folder holds, as plain values that fit into JSON. */
export async function describe(replica: Replica) {
  const { state } = replica;
  const topics = [];
  for (const topic of state.topics.all()) {
    const partitions = [];
    for (const number of topic.partitions) partitions.push(await describeLog(replica, number));
    const { name, id } = topic;
    topics.push({ name, id, configs: Object.fromEntries(topic.configs), partitions });
  }
  topics.sort((a, b) => (a.name < b.name ? -1 : 1));
  const groups = [...state.groupImages].map(([groupId, image]) => [
    groupId,
    decodeGroupImage(image),
  ]);
  const offsets = [...state.offsets.groups()].map((groupId) => [
    groupId,
    [...state.offsets.of(groupId)!].sort(([a], [b]) => a - b),
  ]);
  const description = {
    clusterId: state.clusterId,
    nextProducerId: state.nextProducerId,
    terms: state.terms,
    brokerConfigs: Object.fromEntries(state.brokerConfigs),
    // Older versions had none.
    ...(state.nodeConfigs.size > 0 && { nodeConfigs: entriesOf(state.nodeConfigs) }),
    groupConfigs: entriesOf(state.groupConfigs),
    nextPartition: state.topics.partitions.next,
    topics,
    producers: [...state.producers.all()].sort(([a, x], [b, y]) => a - b || x - y),
    offsets: Object.fromEntries(offsets),
    // Older versions had none.
    ...(state.keyed.size > 0 && { keyed: ledgersOf(state), laneBaseMin: state.keyed.laneBaseMin }),
    groups: Object.fromEntries(groups),
    // Older versions had none.
    ...(state.members !== undefined && { cluster: clusterOf(state) }),
  };
  return JSON.parse(JSON.stringify(description)) as Record<string, unknown> & {
    terms: number[];
  };
}

/** Who is in the cluster, what its nodes can do, and for whom. */
function clusterOf({ members, nodes, admitted, featureLevel, tenants }: Replica['state']) {
  const { voters, learners, removed } = members!;
  return {
    ...{ members: { voters, learners, removed }, featureLevel, nextTenant: tenants.next },
    ...{ nodes: [...nodes.values()], admitted: [...admitted.values()] },
    tenants: [...tenants.all()],
  };
}

/** Ledgers as their bytes: whatever is in them, it is read as it was written. */
function ledgersOf(state: Replica['state']) {
  return [...state.keyed.keys()].sort().map((key) => {
    const writer = new ByteWriter();
    state.keyed.writeLedger(writer, key);
    return [key, writer.finish().toString('hex')];
  });
}

function entriesOf(all: ReadonlyMap<string, ReadonlyMap<string, string>>) {
  return [...all].map(([id, configs]) => [id, Object.fromEntries(configs)]);
}

async function describeLog(replica: Replica, number: number) {
  const { partitions } = replica.state.topics;
  const logStart = partitions.logStart(number);
  const end = partitions.end(number);
  const plan = new ReadPlan();
  const reader = new LogReader(replica.journal);
  const limits = { bytesMax: Number.MAX_SAFE_INTEGER, oneAtLeast: true, offsetEnd: end };
  await reader.planLoading(number, logStart, limits, plan);
  const read = await reader.read([plan]);
  const bytes = Buffer.concat(read?.pieces[0] ?? []);
  const { batches } = decodeBatches(bytes, { codecs, openedBytesMax: 1_000_000 });
  read?.release();
  return {
    number,
    index: partitions.index(number),
    logStart,
    end,
    bytes: partitions.bytes(number),
    maxTimestamp: partitions.maxTimestamp(number),
    batches: batches.map((batch) => ({
      baseOffset: batch.baseOffset,
      lastOffset: batch.lastOffset,
      compression: batch.compression,
      timestampType: batch.timestampType,
      records: batch.records.map((record) => ({
        ...record,
        key: text(record.key),
        value: text(record.value),
        headers: record.headers.map(({ key, value }) => [String(key), text(value)]),
      })),
    })),
  };
}

function text(bytes: Buffer | null): string | null {
  return bytes === null ? null : bytes.toString('latin1');
}
