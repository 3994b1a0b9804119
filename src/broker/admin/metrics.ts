import { Counter, Gauge, Registry } from 'prom-client';
import type { DeliveryCounters } from '../../groups/keyed/counters.ts';
import { demandOf } from '../../groups/keyed/room.ts';
import type { HttpAnswer } from '../../net/http-server.ts';
import type { NetCounters } from '../../net/limits.ts';
import type { Broker } from '../broker.ts';
import type { Delivery } from '../keyed/delivery.ts';
import { invariantNames } from '../keyed/invariants.ts';
import { type TopicView, topicView } from './group-view.ts';

/**
 * All metrics as Prometheus reads them. Counters are plain numbers where things happen; everything
 * else is done here, when somebody asks.
 */
export async function metricsText(broker: Broker, net: NetCounters): Promise<HttpAnswer> {
  const registry = new Registry();
  addBroker(registry, broker, net);
  addInvariants(registry, broker);
  addDeliveries(registry, broker);
  return { status: 200, contentType: registry.contentType, body: await registry.metrics() };
}

type Labels = Readonly<Record<string, string>>;

/** A metric and its values; counters are those whose names end in `_total`. */
class Family {
  readonly #metric: Counter | Gauge;

  constructor(registry: Registry, name: string, help: string, labelNames: readonly string[] = []) {
    const options = { name: `keylane_${name}`, help, labelNames, registers: [registry] };
    this.#metric = name.endsWith('_total') ? new Counter(options) : new Gauge(options);
  }

  add(value: number, labels: Labels = {}): void {
    this.#metric.inc(labels, value);
  }
}

function addBroker(registry: Registry, broker: Broker, net: NetCounters): void {
  const { replica, clock } = broker;
  const values: readonly (readonly [name: string, help: string, value: number])[] = [
    ['uptime_seconds', 'time since the process started', clock.monotonicMs() / 1000],
    ['memory_resident_bytes', 'memory of the process', process.memoryUsage.rss()],
    ['connections_open', 'connections of clients', net.connectionsOpen],
    ['connections_accepted_total', 'connections that clients made', net.connectionsAccepted],
    ['connections_refused_total', 'closed at once, by a limit', net.connectionsRefused],
    ['requests_total', 'requests that were read', net.framesIn],
    ['received_bytes_total', 'bytes from clients', net.bytesIn],
    ['sent_bytes_total', 'bytes to clients', net.bytesOut],
    ['requests_parked', 'requests that wait, such as fetches for records', broker.parkedCount],
    ['journal_index', 'entries of the journal that are applied', replica.state.appliedIndex],
    ['disk_free_bytes', 'space on the disk of the data folder', replica.disk.freeBytes],
  ];
  for (const [name, help, value] of values) new Family(registry, name, help).add(value);
}

function addInvariants(registry: Registry, { keyed }: Broker): void {
  const labels = ['invariant'];
  const { checks, violations } = keyed.invariants;
  const checked = new Family(registry, 'invariant_checks_total', 'checks that ran', labels);
  const violated = new Family(registry, 'invariant_violations_total', 'defects found', labels);
  for (const invariant of invariantNames) {
    checked.add(checks[invariant], { invariant });
    violated.add(violations[invariant], { invariant });
  }
}

const groupLabels = ['group', 'topic'];

const figures: readonly (readonly [name: string, help: string, of: (view: TopicView) => number])[] =
  [
    ['unfinished_records', 'records that the group is not done with', (view) => view.unfinished],
    ['ready_records', 'free for the next consumer that asks', (view) => view.ready],
    ['held_records', 'behind a record of their key that is granted', (view) => view.held],
    ['granted_records', 'given to consumers and not finished', (view) => view.granted],
    ['in_hand_records', 'given to consumers and not proven handled', (view) => view.inHand],
    ['leased_keys', 'keys that a consumer holds', (view) => view.leasedKeys],
    ['pinned_keys', 'leased, though nothing of them is in hand', (view) => view.pinnedKeys],
    [
      'oldest_lease_seconds',
      'age of the record that is in hand for longest',
      (view) => (view.oldestLease?.ageMs ?? 0) / 1000,
    ],
  ];

const counts: readonly (readonly [key: keyof DeliveryCounters, name: string, help: string])[] = [
  ['granted', 'delivered_records_total', 'records given to consumers'],
  ['redelivered', 'redelivered_records_total', 'records given to consumers again'],
  ['finished', 'finished_records_total', 'records that the group is done with'],
  ['returned', 'returned_records_total', 'records that came back from consumers'],
  ['charged', 'failed_attempts_total', 'failed deliveries that were charged to a record'],
  ['deadLetters', 'dead_letters_total', 'records given up after too many attempts'],
  ['commitsBeyond', 'commits_beyond_total', 'commits of what was never delivered'],
];

function addDeliveries(registry: Registry, broker: Broker): void {
  const family = (name: string, help: string, labels = groupLabels): Family =>
    new Family(registry, `keyed_${name}`, help, labels);
  const gauges = figures.map(([name, help, of]) => ({ of, family: family(name, help) }));
  const totals = counts.map(([key, name, help]) => ({ key, family: family(name, help) }));
  const members = family('members', 'consumers of the group');
  const windows = family('window_records', 'records that consumers may have in hand');
  const waiting = family('waiting_records', 'records that failed', [...groupLabels, 'reason']);
  for (const delivery of broker.keyed.all()) {
    const { groupId, topic, dispatcher } = delivery;
    const labels = { group: groupId, topic: topic.name };
    const view = topicView(broker, groupId, topic);
    for (const gauge of gauges) gauge.family.add(gauge.of(view), labels);
    for (const total of totals) total.family.add(dispatcher.counters[total.key], labels);
    for (const [reason, count] of Object.entries(view.waiting)) {
      waiting.add(count, { ...labels, reason });
    }
    members.add(dispatcher.members.size, labels);
    windows.add(windowOf(delivery), labels);
  }
}

function windowOf({ dispatcher }: Delivery): number {
  let sum = 0;
  for (const member of dispatcher.members.values())
    sum += member.window.size(demandOf(dispatcher, member));
  return sum;
}
