/** What is committed in a simulated cluster, and that every node agrees with it. */
import assert from 'node:assert/strict';
import { crc32c } from '../../src/core/crc32c.ts';
import { EntryReader } from '../../src/log/entry-reader.ts';
import type { StoredEntry } from '../../src/log/format.ts';
import { LogReader, ReadPlan } from '../../src/log/log-reader.ts';
import type { Replica } from '../../src/replica/replica.ts';
import { decodeTopicCreated } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { decodeKeyedChange } from '../../src/state/keyed/effects.ts';
import { readStoredBatch } from '../../src/state/stored-batch.ts';
import type { SimClock } from './sim-clock.ts';
import type { SimNode } from './sim-node.ts';

export class ClusterTruth {
  /** By index: of each entry its term and a checksum of its content. */
  readonly #log = new Map<number, string>();
  /** Values by partition and offset. */
  readonly #records = new Map<string, string>();
  /** Checksums of the state, by index. */
  readonly #states = new Map<number, number>();
  /** The number of the first partition of each topic. */
  readonly #topics = new Map<string, number>();
  /** Values of each key, in the order in which they were appended. */
  readonly #keys = new Map<string, string[]>();
  #committedEnd = 0;
  applied = 0;
  memberChanges = 0;
  readonly #note: (what: () => string) => void;

  constructor(note: (what: () => string) => void) {
    this.#note = note;
  }

  get committedEnd(): number {
    return this.#committedEnd;
  }

  /** What was stored at a partition's offset. */
  record(partition: number, offset: number): string | undefined {
    return this.#records.get(`${partition}:${offset}`);
  }

  /** The number of a topic's partition in the state. */
  partitionOf(topic: string, partition: number): number {
    const first = this.#topics.get(topic);
    assert.ok(first !== undefined, `${topic} was made`);
    return first + partition;
  }

  /** Values of a key up to this one, in the order in which they were appended. */
  valuesBefore(value: string): readonly string[] {
    const values = this.#keys.get(value.split('@')[1]!) ?? [];
    const at = values.indexOf(value);
    assert.ok(at >= 0, `${value} was never committed`);
    return values.slice(0, at);
  }

  /** State machine safety: what one node applies at an index, all do (section 5.4.3). */
  onApplied(node: SimNode, entry: StoredEntry): void {
    this.applied++;
    const { index, term, type, meta, batches } = entry;
    const content = crc32c(Buffer.concat([meta, ...batches]));
    const facts = `${term}:${type}:${content}`;
    const known = this.#log.get(index);
    if (known === undefined) {
      this.#log.set(index, facts);
      this.#note(() => `${node.id} applies ${index}/${term}: ${shown(entry)}`);
      for (const [i, batch] of batches.entries()) this.#noteRecord(entry.partitions[i]!, batch);
      if (type === EntryType.members) this.memberChanges++;
      if (type === EntryType.topicCreated) {
        const { name, firstPartition } = decodeTopicCreated(meta);
        this.#topics.set(name, firstPartition);
      }
    } else assert.equal(facts, known, `entry ${index} on ${node.id}`);
    this.#committedEnd = Math.max(this.#committedEnd, index);
  }

  #noteRecord(partition: number, batch: Buffer): void {
    const { baseOffset } = readStoredBatch(batch);
    const place = `${partition}:${baseOffset}`;
    assert.equal(this.#records.get(place), undefined, `${place} is stored twice`);
    const value = valueIn(batch);
    this.#records.set(place, value);
    const [, key] = value.split('@');
    if (key === undefined) return;
    const values = this.#keys.get(key) ?? [];
    this.#keys.set(key, values);
    values.push(value);
  }

  /** Equal entries give equal state, also from a snapshot and over a restart. */
  async onStarted(node: SimNode, replica: Replica): Promise<void> {
    // What it applied before anybody listened.
    const reader = new EntryReader(replica.journal);
    const last = replica.state.appliedIndex;
    for (let next = this.#committedEnd + 1; next <= last; ) {
      const entries = await node.run(reader.read(next, 100_000));
      if (!node.isUp) return;
      for (const entry of entries!) if (entry.index <= last) this.onApplied(node, entry);
      next = entries!.at(-1)!.index + 1;
    }
    this.noteState(node, replica);
  }

  noteState(node: SimNode, replica: Replica): void {
    const { appliedIndex } = replica.state;
    const sum = crc32c(replica.state.image());
    const known = this.#states.get(appliedIndex);
    if (known === undefined) this.#states.set(appliedIndex, sum);
    else assert.equal(sum, known, `the state of ${node.id} at ${appliedIndex}`);
  }

  /** What is not deleted can be read on every node, however it came there. */
  async checkRecords({ replica, id }: SimNode, clock: SimClock): Promise<void> {
    const { topics } = replica!.state;
    const { partitions: columns } = topics;
    const reader = new LogReader(replica!.journal);
    for (const partition of [...topics.all()].flatMap(({ partitions }) => [...partitions])) {
      const end = columns.end(partition);
      for (let offset = columns.logStart(partition); offset < end; offset++) {
        const plan = new ReadPlan();
        const limits = { bytesMax: 1, oneAtLeast: true, offsetEnd: offset + 1 };
        await clock.run(reader.planLoading(partition, offset, limits, plan));
        const read = await clock.run(reader.read([plan]));
        const [batch] = read?.pieces[0] ?? [];
        assert.ok(batch !== undefined, `${id} lacks ${partition}:${offset}`);
        assert.equal(valueIn(batch), this.record(partition, offset));
      }
    }
  }

  /** Each sequence of an idempotent producer is stored once. */
  checkSequences(): void {
    const seen = new Set<string>();
    for (const value of this.#records.values()) {
      if (value.startsWith('w')) continue;
      assert.ok(!seen.has(value), `${value} is stored twice`);
      seen.add(value);
    }
  }
}

function valueIn(batch: Buffer): string {
  return /[vw]\d+(@k\d+)?/.exec(batch.subarray(61).toString('latin1'))![0];
}

function shown({ type, meta, batches }: StoredEntry): string {
  if (type === EntryType.keyed) return JSON.stringify(decodeKeyedChange(meta));
  return `type ${type} ${batches.map(valueIn)}`;
}
