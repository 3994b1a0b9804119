import { codecs } from '../../src/core/codecs.ts';
import { type Random, seededRandom } from '../../src/core/random.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import {
  ConfigResource,
  encodeBatches,
  encodeClusterFounded,
  encodeConfigsSet,
  encodeFeatureLevel,
  encodeGroupDeleted,
  encodeGroupStored,
  encodeLogStarts,
  encodeMembers,
  encodeNodeAdmitted,
  encodeNodeStored,
  encodeOffsetsCommitted,
  encodeOffsetsDeleted,
  encodePartitionsAdded,
  encodeProducerIdsAllocated,
  encodeProducersExpired,
  encodeTopicCreated,
  encodeTopicDeleted,
} from '../../src/state/commands.ts';
import { EntryType, entryVersion } from '../../src/state/entry-types.ts';
import { encodeKeyedChange, type KeyedEffect } from '../../src/state/keyed/effects.ts';
import type { AppliedEntry, StateMachine } from '../../src/state/state-machine.ts';
import { RandomEffects } from './keyed/random-effects.ts';

/** Entries as a leader would plan them on the state, of every type. */
export class RandomEntries {
  readonly #random: Random;
  readonly #state: StateMachine;
  #term = 1;
  #made = 0;

  constructor(seed: number, state: StateMachine) {
    this.#random = seededRandom(seed);
    this.#state = state;
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }

  #pick<T>(items: Iterable<T>): T | undefined {
    const all = [...items];
    return all[this.#below(all.length)];
  }

  #entry(type: EntryType, meta: Buffer): AppliedEntry {
    const index = this.#state.appliedIndex + 1;
    return {
      type,
      version: entryVersion,
      term: this.#term,
      index,
      meta,
      batches: [],
      partitions: [],
    };
  }

  next(): AppliedEntry {
    const { topics } = this.#state;
    if (topics.size === 0) return this.#createTopic();
    const dice = this.#below(100);
    if (dice < 40) return this.#batches();
    if (dice < 55) return this.#commit();
    if (dice < 60) return this.#createTopic();
    if (dice < 75) return this.#keyed();
    return this.#rare(this.#below(15));
  }

  #createTopic(): AppliedEntry {
    const meta = encodeTopicCreated({
      name: `topic-${this.#made++}`,
      topicId: this.#random.bytes(16).toString('hex'),
      firstPartition: this.#state.topics.partitions.next + this.#below(3),
      partitionCount: 1 + this.#below(this.#random.next() < 0.05 ? 2000 : 5),
      configs: new Map([['retention.ms', String(this.#below(1000))]]),
    });
    return this.#entry(EntryType.topicCreated, meta);
  }

  #partition(): number {
    return this.#pick(this.#pick(this.#state.topics.all())!.partitions)!;
  }

  #batches(): AppliedEntry {
    const partitions = [
      ...new Set(Array.from({ length: 1 + this.#below(4) }, () => this.#partition())),
    ];
    const batches = partitions.map((partition) => {
      const isIdempotent = this.#random.next() < 0.5;
      return buildBatch(
        {
          records: [{ key: null, value: this.#random.bytes(10), timestamp: this.#below(100_000) }],
          baseOffset: this.#state.topics.partitions.end(partition),
          leaderEpoch: this.#term,
          lastOffsetDelta: this.#below(5),
          ...(isIdempotent
            ? {
                producerId: this.#below(4),
                producerEpoch: this.#below(2),
                baseSequence: this.#below(99),
              }
            : {}),
        },
        codecs,
      );
    });
    return {
      ...this.#entry(EntryType.batches, encodeBatches(this.#below(1e9))),
      batches,
      partitions,
    };
  }

  #group(): string {
    return `group-${this.#below(6)}`;
  }

  #commit(): AppliedEntry {
    const offset = {
      offset: this.#below(1e6),
      leaderEpoch: -1,
      metadata: 'm'.repeat(this.#below(5)),
      commitMs: this.#below(1e9),
      expireMs: -1,
    };
    const offsets = [[this.#partition(), offset] as const];
    const meta = encodeOffsetsCommitted({ groupId: this.#group(), offsets });
    return this.#entry(EntryType.offsetsCommitted, meta);
  }

  /** Some with batches, as dead letters come. */
  #keyed(): AppliedEntry {
    const topic = this.#pick(this.#state.topics.all())!;
    const groupId = this.#group();
    const { keyed } = this.#state;
    const ledger = keyed.get(groupId, topic.id);
    const random = new RandomEffects(this.#random, topic.partitions);
    const effects: KeyedEffect[] = [];
    if (ledger === undefined) {
      effects.push(random.opened(keyed.freeSlot(topic.id)!, keyed.laneBaseMin));
    } else if (this.#below(20) === 0) {
      effects.push({ kind: 'closed' });
    } else {
      for (let left = this.#below(6); left >= 0; left--) effects.push(random.next(ledger));
    }
    const change = { groupId, topicId: topic.id, effects, appendedMs: this.#below(1e9) };
    const meta = encodeKeyedChange(change);
    const { batches, partitions } = this.#batches();
    const entry = this.#entry(EntryType.keyed, meta);
    return this.#below(4) === 0 ? { ...entry, batches, partitions } : entry;
  }

  #rare(kind: number): AppliedEntry {
    const topic = this.#pick(this.#state.topics.all())!;
    const { partitions } = this.#state.topics;
    switch (kind) {
      case 0:
        this.#term++;
        return this.#entry(EntryType.noop, Buffer.alloc(0));
      case 1:
        return this.#entry(EntryType.topicDeleted, encodeTopicDeleted(topic.id));
      case 2: {
        const added = {
          topicId: topic.id,
          firstPartition: partitions.next,
          partitionCount: 1 + this.#below(3),
        };
        return this.#entry(EntryType.partitionsAdded, encodePartitionsAdded(added));
      }
      case 3:
        return this.#configs(topic.id);
      case 4: {
        const partition = this.#partition();
        const offset = this.#below(partitions.end(partition) + 1);
        const meta = encodeLogStarts([{ partition, offset, droppedBytes: this.#below(500) }]);
        return this.#entry(EntryType.logStartsMoved, meta);
      }
      case 5: {
        const groupId = this.#group();
        const deleted = {
          groupId,
          partitions: [...(this.#state.offsets.of(groupId)?.keys() ?? [])],
        };
        return this.#entry(EntryType.offsetsDeleted, encodeOffsetsDeleted(deleted));
      }
      case 6: {
        const stored = { groupId: this.#group(), image: this.#random.bytes(this.#below(200)) };
        return this.#entry(EntryType.groupStored, encodeGroupStored(stored));
      }
      case 7:
        return this.#entry(EntryType.groupDeleted, encodeGroupDeleted(this.#group()));
      case 8: {
        const meta = encodeProducerIdsAllocated(this.#state.nextProducerId + 1000);
        return this.#entry(EntryType.producerIdsAllocated, meta);
      }
      case 9: {
        const expired = [...this.#state.producers.all()].slice(0, 3);
        const producers = expired.map(([partition, id]) => [partition, id] as const);
        return this.#entry(EntryType.producersExpired, encodeProducersExpired({ producers }));
      }
      case 10: {
        const level = encodeFeatureLevel(1 + this.#below(2));
        return this.#entry(EntryType.featureLevelRaised, level);
      }
      case 11:
        return this.#members();
      case 12: {
        const node = { nodeId: this.#below(5), peerHost: 'h', peerPort: this.#below(9) };
        // Before that nobody admits nodes.
        if (this.#state.featureLevel < 2) return this.#members();
        return this.#entry(EntryType.nodeAdmitted, encodeNodeAdmitted(node));
      }
      case 13: {
        const address = { host: 'h', port: this.#below(9), peerHost: 'p', peerPort: 1 };
        const node = { nodeId: this.#below(5), directoryId: 'd', ...address };
        return this.#entry(EntryType.nodeStored, encodeNodeStored(node));
      }
      default:
        return this.#entry(EntryType.clusterFounded, encodeClusterFounded(`c${this.#below(9)}`));
    }
  }

  #members(): AppliedEntry {
    const ids = [0, 1, 2, 3, 4].filter(() => this.#below(2) === 0).map((id) => `${id}:d`);
    const members = { voters: ['9:d', ...ids.slice(1)], learners: ids.slice(0, 1), removed: [] };
    return this.#entry(EntryType.members, encodeMembers(members));
  }

  #configs(topicId: string): AppliedEntry {
    const resourceType = this.#pick(Object.values(ConfigResource))!;
    const resource =
      resourceType === ConfigResource.topic
        ? topicId
        : resourceType === ConfigResource.group
          ? this.#group()
          : this.#pick(['', '0', '1'])!;
    const changes = new Map([[`key-${this.#below(3)}`, this.#random.next() < 0.4 ? null : 'v']]);
    return this.#entry(EntryType.configsSet, encodeConfigsSet({ resourceType, resource, changes }));
  }
}
