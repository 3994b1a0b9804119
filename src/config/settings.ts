import { deliveryConfigs } from './delivery-configs.ts';
import {
  type BooleanSetting,
  choice,
  flag,
  integer,
  list,
  maxInt,
  maxLong,
  type NumberSetting,
  type Setting,
  type TextFormat,
  text,
} from './setting.ts';

/**
 * Every setting of the broker: name, type, default, bounds and meaning, in one table. Names are
 * Kafka's own where Kafka has the setting. What is in the table is enforced; there is nothing else.
 * The loader (load.ts) makes the JSON schema, the environment variables and the documentation
 * from it.
 */

const kib = 1024;
const mib = 1024 * kib;

const portPattern = String.raw`(?:\d{1,4}|[0-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])`;
/** What parseHostPort takes (a test compares them). */
const hostPort = String.raw`(?:\[[^\s\[\]]*:[^\s\[\]]*\]|[^\s:\[\]]*):${portPattern}`;
const hostPortWords = 'HOST:PORT, [IPV6]:PORT or :PORT, with a port up to 65535';
const address: TextFormat = { pattern: `^${hostPort}$`, words: hostPortWords };
const addressOrNothing: TextFormat = {
  pattern: `^(?:${hostPort})?$`,
  words: `${hostPortWords}, or nothing`,
};
const topicPattern: TextFormat = {
  pattern: '^[a-zA-Z0-9._*-]{1,249}$',
  words: 'names of topics, in which * stands for any text',
};
const clusterNode: TextFormat = { pattern: `^\\d{1,10}@${hostPort}$`, words: 'ID@HOST:PORT' };
const tenantName: TextFormat = {
  pattern: '^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$',
  words: 'lower case letters, digits and - within, up to 63',
};
const secret: TextFormat = { pattern: '^(?:.{16,1024})?$', words: '16 characters or more' };
const path: TextFormat = { pattern: '^[^\\0]+$', words: 'a path' };

export const settingsTable = {
  // Where it listens and where it keeps its data
  listen: text('127.0.0.1:9092', address, 'HOST:PORT to listen on; port 0 takes any free one'),
  advertise: text(
    '',
    addressOrNothing,
    'HOST:PORT that clients are told; empty: what they connected to',
  ),
  'admin.listen': text(
    '127.0.0.1:9644',
    addressOrNothing,
    'HOST:PORT of the HTTP endpoint for operators; port 0 takes any free one; empty: there is none',
  ),
  data: text('data', path, 'folder of the data'),
  'node.id': integer(0, 0, maxInt, 'id of this node, as clients see it'),
  'cluster.nodes': list(
    '',
    clusterNode,
    'all nodes of the cluster, this one included: ID@HOST:PORT, where the other nodes reach it',
  ),
  'cluster.listen': text(
    '',
    addressOrNothing,
    'HOST:PORT to listen on for the other nodes; empty: what cluster.nodes says of this one',
  ),
  'cluster.secret': text(
    '',
    secret,
    'what the nodes of the cluster know and nobody else, 16 characters or more',
  ),
  'cluster.snapshot.bytes.per.second': integer(
    64 * mib,
    64 * kib,
    maxInt,
    'what a node fetches in a second, at most, when what it lacks is in no log any more',
  ),
  'cluster.election.timeout.ms': integer(
    400,
    50,
    60_000,
    'without a word of the leader for this long, and up to twice that, a new one is elected, ms',
  ),
  tenants: list(
    '',
    tenantName,
    'tenants that the first start makes, beside the default one; see `keylane tenants`',
  ),
  'tenant.port.base': integer(
    20_000,
    0,
    65_000,
    'tenant N listens on this port and N, as long as there are ports; 0: on any free one',
  ),
  'tenants.max': integer(10_000, 0, 40_000, 'tenants in all, beside the default one'),
  'admin.secret': text(
    '',
    secret,
    'who knows it may change something over admin.listen, 16 characters or more; empty: nobody',
  ),
  'log.level': choice(
    'info',
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal'],
    'log lines below this are left out',
  ),

  // Network
  'socket.request.max.bytes': integer(100 * mib, 1 * kib, 1024 * mib, 'largest request, bytes'),
  'connections.max.idle.ms': integer(
    600_000,
    1,
    maxLong,
    'an idle connection is closed after this, ms',
  ),
  'max.connections': integer(maxInt, 1, maxInt, 'connections in all'),
  'max.connections.per.ip': integer(maxInt, 1, maxInt, 'connections from one address'),
  'connection.inflight.bytes.max': integer(
    16 * mib,
    64 * kib,
    1024 * mib,
    'bytes of unanswered requests and unwritten answers, above which a connection is not read from',
  ),
  'inflight.bytes.max': integer(
    256 * mib,
    1 * mib,
    64 * 1024 * mib,
    'the same over all connections',
  ),
  'connection.write.timeout.ms': integer(
    60_000,
    100,
    maxLong,
    'a client that takes no bytes of an answer for this long is cut off, ms',
  ),

  // Journal
  'journal.sync': choice(
    'always',
    ['always', 'interval'],
    'always: all that is acknowledged is on disk; interval: a power cut loses the last interval',
  ),
  'journal.sync.interval.ms': integer(
    1000,
    1,
    60_000,
    'with journal.sync=interval: time between syncs, ms',
  ),
  'journal.sync.delay.ms': integer(
    0,
    0,
    1000,
    'adds this to every sync, to measure as on slow disks, ms',
  ),
  'journal.file.bytes': integer(128 * mib, 1 * mib, 1024 * mib, 'size of a journal file'),
  'journal.file.extents.max': integer(
    250_000,
    100,
    10_000_000,
    'record batches in a journal file; bounds the memory of its index',
  ),
  'journal.recent.bytes': integer(
    64 * mib,
    0,
    64 * 1024 * mib,
    'the newest bytes, kept in memory for consumers',
  ),
  'journal.index.cache.bytes': integer(
    8 * mib,
    64 * kib,
    64 * 1024 * mib,
    'index blocks kept in memory',
  ),
  'journal.snapshot.bytes': integer(
    128 * mib,
    64 * kib,
    maxLong,
    'journal bytes after which a snapshot is written',
  ),
  'disk.low.water.bytes': integer(
    256 * mib,
    0,
    maxLong,
    'produce is refused while less than this is free',
  ),
  'disk.reserve.bytes': integer(
    16 * mib,
    0,
    1024 * mib,
    'held back for commits and deletions on a full disk',
  ),
  'clock.settle.ms': integer(
    600_000,
    0,
    maxLong,
    'after a jump of the clock nothing expires until it was right again for this long, ms',
  ),

  // Topics
  'auto.create.topics.enable': flag(true, 'topics are made when a client first names them'),
  'num.partitions': integer(1, 1, 1_000_000, 'partitions of a topic that is made without a number'),
  'max.partitions': integer(1_000_000, 1, 10_000_000, 'partitions in all'),
  'message.max.bytes': integer(
    1_048_588,
    0,
    1024 * mib,
    'largest record batch (max.message.bytes of topics)',
  ),
  'compression.type': choice(
    'producer',
    ['producer', 'uncompressed', 'gzip', 'snappy', 'lz4', 'zstd'],
    'how batches are stored (compression.type of topics)',
  ),
  'log.message.timestamp.type': choice(
    'CreateTime',
    ['CreateTime', 'LogAppendTime'],
    'message.timestamp.type of topics',
  ),
  'log.message.timestamp.before.max.ms': integer(
    maxLong,
    0,
    maxLong,
    'message.timestamp.before.max.ms of topics',
  ),
  'log.message.timestamp.after.max.ms': integer(
    3_600_000,
    0,
    maxLong,
    'message.timestamp.after.max.ms of topics',
  ),
  'min.insync.replicas': integer(
    1,
    1,
    maxInt,
    'nodes that must have what is acknowledged with acks=all (min.insync.replicas of topics)',
  ),
  'log.retention.ms': integer(604_800_000, -1, maxLong, 'retention.ms of topics; -1: for ever'),
  'log.retention.bytes': integer(
    -1,
    -1,
    maxLong,
    'retention.bytes of topics, each partition; -1: no limit',
  ),
  'log.retention.check.interval.ms': integer(
    300_000,
    1,
    maxLong,
    'time between looks for what has expired, ms',
  ),
  'decompressed.bytes.max': integer(
    64 * mib,
    1 * mib,
    1024 * mib,
    'what a compressed batch may become',
  ),

  // Fetch
  'fetch.max.bytes': integer(55 * mib, 1 * kib, 1024 * mib, 'largest answer to a fetch'),
  'max.incremental.fetch.session.cache.slots': integer(1000, 0, 100_000, 'fetch sessions'),

  // Producers
  'producer.id.expiration.ms': integer(
    86_400_000,
    1,
    maxInt,
    'an idle producer is forgotten after this, ms',
  ),
  'producer.state.max': integer(
    200_000,
    100,
    10_000_000,
    'pairs of partition and producer remembered; the longest idle are forgotten first',
  ),

  // Groups
  'group.min.session.timeout.ms': integer(6000, 1, maxInt, 'shortest session timeout, ms'),
  'group.max.session.timeout.ms': integer(1_800_000, 1, maxInt, 'longest session timeout, ms'),
  'group.initial.rebalance.delay.ms': integer(
    3000,
    0,
    maxInt,
    'how long an empty group waits for more members, ms',
  ),
  'group.max.size': integer(maxInt, 1, maxInt, 'members of a group'),
  'offset.metadata.max.bytes': integer(4096, 0, maxInt, 'largest metadata of a committed offset'),
  'offsets.retention.minutes': integer(
    10_080,
    1,
    maxInt,
    'offsets of a group without members expire after this',
  ),
  'offsets.retention.check.interval.ms': integer(
    600_000,
    1,
    maxLong,
    'time between looks for expired offsets, ms',
  ),

  // Keyed delivery
  ...deliveryConfigs,
  'keyed.topics': list(
    '',
    topicPattern,
    'names of topics in keyed delivery, where neither topic nor group says; * stands for any text',
  ),
  'keyed.memory.bytes': integer(
    128 * mib,
    1 * mib,
    64 * 1024 * mib,
    'memory for records that wait for their keys',
  ),
  'keyed.lanes': integer(
    32,
    1,
    1_000_000,
    'partitions of a topic in keyed delivery that is made without a number: room for consumers',
  ),
  'keyed.rebalance.wait.ms': integer(
    1000,
    0,
    maxInt,
    'how long members of a group whose topics are all keyed wait for the others, ms',
  ),
  'lease.warn.ms': integer(
    30_000,
    0,
    maxInt,
    'a record that is in hand for longer is logged, ms; 0: never',
  ),
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof settingsTable;

type ValueOf<S extends Setting> = S extends NumberSetting
  ? number
  : S extends BooleanSetting
    ? boolean
    : string;

/** All settings with their values. */
export type Settings = { readonly [K in SettingName]: ValueOf<(typeof settingsTable)[K]> };

/** The settings with everything at its default, but for what is given. */
export function withDefaults(given: Partial<Settings> = {}): Settings {
  const defaults = Object.fromEntries(
    Object.entries(settingsTable).map(([name, setting]) => [name, setting.default]),
  );
  return { ...defaults, ...given } as Settings;
}
