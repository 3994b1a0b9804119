import assert from 'node:assert/strict';
import { codecs } from '../../src/core/codecs.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { FilePort } from '../../src/log/file-port.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import type { Outcome } from '../../src/replica/group-commit.ts';
import type { PeerPort } from '../../src/replica/peer-port.ts';
import {
  type ProduceOutcome,
  type ProducePart,
  ProducePlanner,
} from '../../src/replica/produce-planner.ts';
import { type JournalSettings, Replica } from '../../src/replica/replica.ts';
import { encodeOffsetsCommitted, encodeTopicCreated } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { SimClock } from '../sim/sim-clock.ts';
import { SimDisk } from '../sim/sim-files.ts';
import { topicSettings } from './topic-settings.ts';

export const folder = 'data/default';

export interface TestReplicaOptions {
  readonly journal?: Partial<JournalSettings>;
  readonly disk?: { readonly lowWaterBytes: number; readonly reserveBytes: number };
  readonly wrapFiles?: (files: FilePort) => FilePort;
  readonly peers?: PeerPort;
}

/** A machine with a simulated clock and disk on which replicas start and stop. */
export class TestMachine {
  readonly clock = new SimClock(seededRandom(1));
  readonly disk = new SimDisk({
    random: seededRandom(2),
    defer: (complete) => this.clock.defer(complete),
  });
  readonly fatal: unknown[] = [];

  async start(options: TestReplicaOptions = {}): Promise<TestReplica> {
    const files = this.disk.files();
    const opening = Replica.open({
      files: options.wrapFiles?.(files) ?? files,
      folder,
      clock: this.clock,
      random: seededRandom(3),
      voter: 'v1',
      journal: {
        sync: 'always',
        syncIntervalMs: 50,
        fileBytesMax: 8192,
        fileExtentsMax: 1000,
        recentBytesMax: 64 * 1024,
        indexCacheBytesMax: 64 * 1024,
        snapshotBytes: 1_000_000,
        ...options.journal,
      },
      disk: options.disk ?? { lowWaterBytes: 0, reserveBytes: 0 },
      ...(options.peers !== undefined && {
        group: {
          ...{ peers: options.peers, log: silentLogger, fetchBytesPerSecondMax: 1e9 },
          onSnapshotFetched: () => assert.fail('nobody offers a snapshot'),
        },
      }),
      onFatal: (error) => this.fatal.push(error),
    });
    const { replica } = await this.clock.run(opening);
    await this.clock.settle();
    return new TestReplica(this.clock, replica);
  }

  /** The process ends and loses nothing but what it had in mind. */
  kill(): void {
    this.disk.kill();
    this.clock.clear();
  }

  /** The power fails, and all that was not synced is gone. */
  crash(): void {
    this.disk.crash({ keep: 0, tear: 0 });
    this.clock.clear();
  }
}

/** A replica with a topic of three partitions, 0 to 2. */
export class TestReplica {
  readonly clock: SimClock;
  readonly replica: Replica;
  readonly planner: ProducePlanner;

  constructor(clock: SimClock, replica: Replica) {
    this.clock = clock;
    this.replica = replica;
    this.planner = new ProducePlanner(replica, clock, codecs, 1_000_000);
  }

  async createTopic(): Promise<void> {
    const created = {
      name: 'orders',
      topicId: '00112233445566778899aabbccddeeff',
      firstPartition: 0,
      partitionCount: 3,
      configs: new Map(),
    };
    const meta = encodeTopicCreated(created);
    const done = this.replica.proposeAndWait({ type: EntryType.topicCreated, meta });
    assert.equal(await this.clock.run(done), 'applied');
  }

  /** The answer arrives in the list. */
  produceLater(records: Buffer, partition = 0): ProduceOutcome[] {
    const answers: ProduceOutcome[] = [];
    const topicPartition = `orders-${partition}`;
    const part: ProducePart = { partition, topicPartition, settings: topicSettings, records };
    this.planner.produce([part], 11, (outcomes) => answers.push(...outcomes));
    return answers;
  }

  async produce(records: Buffer, partition = 0): Promise<ProduceOutcome> {
    const answers = this.produceLater(records, partition);
    await this.clock.settle();
    assert.equal(answers.length, 1);
    return answers[0]!;
  }

  async commit(offset: number): Promise<Outcome> {
    const committed = { offset, leaderEpoch: -1, metadata: '', commitMs: 1, expireMs: -1 };
    const meta = encodeOffsetsCommitted({ groupId: 'g', offsets: [[0, committed]] });
    const done = this.replica.proposeAndWait({ type: EntryType.offsetsCommitted, meta });
    return this.clock.run(done);
  }

  get committed(): number | undefined {
    return this.replica.state.offsets.get('g', 0)?.offset;
  }

  end(partition = 0): number {
    return this.replica.state.topics.partitions.end(partition);
  }
}

export function batchOf(
  valueBytes: number,
  more: { producerId?: number; baseSequence?: number } = {},
) {
  const records = [{ key: null, value: Buffer.alloc(valueBytes, 1), timestamp: 1000 }];
  const idempotence = more.producerId === undefined ? {} : { ...more, producerEpoch: 0 };
  return buildBatch({ records, ...idempotence }, codecs);
}
