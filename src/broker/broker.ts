import type { DeliverySettings } from '../config/delivery-settings.ts';
import type { Settings } from '../config/settings.ts';
import type { TopicSettings } from '../config/topic-settings.ts';
import type { Clock } from '../core/clock.ts';
import type { Codecs } from '../core/compression.ts';
import type { Logger } from '../core/logger.ts';
import type { Random } from '../core/random.ts';
import { LogReader } from '../log/log-reader.ts';
import { advertisedFor, type HostPort, type ListenerSettings } from '../net/listeners.ts';
import type { JobThread } from '../replica/job-thread.ts';
import { LogStarts } from '../replica/log-starts.ts';
import { OffsetPlanner } from '../replica/offset-planner.ts';
import type { BatchOpener } from '../replica/open-batch.ts';
import { ProducePlanner } from '../replica/produce-planner.ts';
import { ProducerExpiry } from '../replica/producer-expiry.ts';
import { ProducerIds } from '../replica/producer-ids.ts';
import type { Replica } from '../replica/replica.ts';
import { Retention } from '../replica/retention.ts';
import { StoredBatches } from '../replica/stored-batches.ts';
import { TopicPlanner } from '../replica/topic-planner.ts';
import { TrustedClock } from '../replica/trusted-clock.ts';
import type { Topic } from '../state/topics.ts';
import { ConfigChanges } from './config-changes.ts';
import { EffectiveConfigs } from './effective-configs.ts';
import { FetchSessions } from './fetch-session.ts';
import { FetchWaiters } from './fetch-waiters.ts';
import { Groups } from './groups.ts';
import type { Client, Handler } from './handler.ts';
import { KeyedGroups } from './keyed/keyed-groups.ts';
import { type ClusterPort, Nodes } from './nodes.ts';
import { OffsetExpiry } from './offset-expiry.ts';
import { ProduceQueues } from './produce-queue.ts';
import { TopicCollisions } from './topic-collisions.ts';

export interface BrokerOptions {
  readonly settings: Settings;
  readonly listener: ListenerSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly codecs: Codecs;
  readonly log: Logger;
  readonly replica: Replica;
  /** The other nodes; undefined for a node on its own. */
  readonly cluster?: ClusterPort | undefined;
  /** The thread for large work. */
  readonly jobs: JobThread;
  /** Opens the large batches of producers. */
  readonly opener: BatchOpener;
  /** Everything that is served, by API key. */
  readonly apis: ReadonlyMap<number, Handler>;
  readonly onFatal: (error: unknown) => void;
}

/** A request that waits. */
export interface Parked {
  finishNow(): void;
}

/** What the handlers of all APIs share: the tenant's replica, its planners, and what is parked. */
export class Broker {
  readonly nodeId: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly codecs: Codecs;
  readonly log: Logger;
  readonly replica: Replica;
  readonly nodes: Nodes;
  readonly apis: ReadonlyMap<number, Handler>;
  /** What is in force on this node, and when it changes. */
  readonly configs: EffectiveConfigs;
  readonly topics: TopicPlanner;
  readonly collisions: TopicCollisions;
  readonly configChanges: ConfigChanges;
  readonly logStarts: LogStarts;
  readonly produce: ProducePlanner;
  readonly produceQueues: ProduceQueues;
  readonly offsets: OffsetPlanner;
  readonly producerIds: ProducerIds;
  readonly reader: LogReader;
  readonly storedBatches: StoredBatches;
  readonly fetchWaiters: FetchWaiters;
  readonly fetchSessions: FetchSessions;
  readonly keyed: KeyedGroups;
  readonly groups: Groups;
  /** Asked before anything is deleted because of its age. */
  readonly trustedClock: TrustedClock;
  readonly offsetExpiry: OffsetExpiry;
  readonly retention: Retention;
  readonly producerExpiry: ProducerExpiry;
  readonly #options: BrokerOptions;
  readonly #parked = new Set<Parked>();

  constructor(options: BrokerOptions) {
    const { settings, clock, replica } = options;
    this.#options = options;
    this.nodeId = settings['node.id'];
    this.clock = clock;
    this.random = options.random;
    this.codecs = options.codecs;
    this.log = options.log;
    this.replica = replica;
    this.nodes = new Nodes(this, options.cluster);
    this.apis = options.apis;
    this.configs = new EffectiveConfigs(settings, replica);
    this.topics = new TopicPlanner(replica, options.random);
    this.collisions = new TopicCollisions(replica);
    this.configChanges = new ConfigChanges(this);
    this.logStarts = new LogStarts(replica, this.topics, clock);
    this.produce = new ProducePlanner(
      replica,
      clock,
      options.codecs,
      settings['decompressed.bytes.max'],
    );
    this.produceQueues = new ProduceQueues(options.opener, clock);
    this.offsets = new OffsetPlanner(replica);
    this.producerIds = new ProducerIds(replica);
    this.reader = new LogReader(replica.journal);
    this.storedBatches = new StoredBatches(options.codecs, options.jobs);
    this.fetchWaiters = new FetchWaiters(replica);
    this.fetchSessions = new FetchSessions(
      settings['max.incremental.fetch.session.cache.slots'],
      this.fetchWaiters,
      options.random,
    );
    this.keyed = new KeyedGroups(this);
    this.groups = new Groups(this, this.keyed);
    this.trustedClock = trustedClock(this);
    this.offsetExpiry = new OffsetExpiry(this);
    this.retention = retention(this);
    this.producerExpiry = producerExpiry(this);
    replica.listen({
      // What waits here is to look for the leader.
      onFollowing: () => this.#answerParked(),
    });
  }

  /** The settings in force on this node. */
  get settings(): Settings {
    return this.configs.settings;
  }

  /** As given at start, without the overrides that clients set. */
  get staticSettings(): Settings {
    return this.#options.settings;
  }

  topicSettings(topic: Topic): TopicSettings {
    return this.configs.topicSettings(topic);
  }

  /** How a topic is delivered to a group: the same object until a configuration changes. */
  deliveryOf(groupId: string, topicName: string): DeliverySettings {
    return this.configs.deliveryOf(groupId, topicName);
  }

  /** Where this client reaches this node. */
  endpointFor(client: Client): HostPort {
    return advertisedFor(client.localAddress, client.localPort, this.#options.listener);
  }

  /** Requests that wait for something are kept here, so that a stop can answer them. */
  park(parked: Parked): void {
    this.#parked.add(parked);
  }

  unpark(parked: Parked): void {
    this.#parked.delete(parked);
  }

  get parkedCount(): number {
    return this.#parked.size;
  }

  /** Answers everything that is parked, with what there is. */
  finishParked(): void {
    this.#answerParked();
    this.keyed.stop();
    this.offsetExpiry.stop();
    this.groups.unload();
  }

  #answerParked(): void {
    for (const parked of [...this.#parked]) parked.finishNow();
  }

  /** Ends what goes on in the background and reads or writes the journal. */
  async stopJobs(): Promise<void> {
    await Promise.all([this.retention.stop(), this.producerExpiry.stop()]);
  }

  /** An error that no handler foresaw: the process ends and recovers. */
  fatal(error: unknown): void {
    this.#options.onFatal(error);
  }
}

function retention(broker: Broker): Retention {
  return new Retention({
    replica: broker.replica,
    topics: broker.topics,
    logStarts: broker.logStarts,
    clock: broker.clock,
    trustedClock: broker.trustedClock,
    checkIntervalMs: broker.staticSettings['log.retention.check.interval.ms'],
    topicSettings: (topic) => broker.topicSettings(topic),
    log: broker.log,
    onFatal: (error) => broker.fatal(error),
  });
}

function producerExpiry(broker: Broker): ProducerExpiry {
  return new ProducerExpiry({
    replica: broker.replica,
    clock: broker.clock,
    trustedClock: broker.trustedClock,
    settings: () => ({
      expirationMs: broker.settings['producer.id.expiration.ms'],
      statesMax: broker.settings['producer.state.max'],
    }),
    log: broker.log,
    onFatal: (error) => broker.fatal(error),
  });
}

function trustedClock({ clock, staticSettings, log }: Broker): TrustedClock {
  return new TrustedClock({
    clock,
    settleMs: staticSettings['clock.settle.ms'],
    onDistrust: (aheadMs) => {
      log.warn({ aheadMs }, 'the clock was set: nothing expires until it is right again');
    },
    onTrust: () => log.info({}, 'the clock is right again: expiry goes on'),
  });
}
