import type { StoredEntry } from '../log/format.ts';
import type { Replica } from '../replica/replica.ts';
import { decodeTopicCreated, decodeTopicDeleted } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import { collisionKey } from './topic-names.ts';

/**
 * Names that would be one in Kafka's metrics, because they differ only in `.` and `_`. Kept for
 * the names that have one of these, so that a creation need not look through all topics.
 */
export class TopicCollisions {
  readonly #names = new Map<string, Set<string>>();
  readonly #nameById = new Map<string, string>();

  constructor(replica: Replica) {
    for (const topic of replica.state.topics.all()) this.#created(topic.id, topic.name);
    replica.listen({
      onApplied: (entry) => this.#onApplied(entry),
    });
  }

  /** Other names that collide with this one. */
  *with(name: string): Generator<string> {
    for (const other of this.#names.get(collisionKey(name)) ?? []) if (other !== name) yield other;
  }

  /** Counts a name whose topic is about to be created; `drop` it if that comes to nothing. */
  add(name: string): void {
    const key = collisionKey(name);
    // A name with neither stands for itself.
    if (!/[._]/.test(name)) return;
    const names = this.#names.get(key) ?? new Set<string>();
    this.#names.set(key, names.add(name));
  }

  drop(name: string): void {
    const key = collisionKey(name);
    const names = this.#names.get(key);
    if (names?.delete(name) && names.size === 0) this.#names.delete(key);
  }

  #created(id: string, name: string): void {
    if (!/[._]/.test(name)) return;
    this.#nameById.set(id, name);
    this.add(name);
  }

  #onApplied(entry: StoredEntry): void {
    if (entry.type === EntryType.topicCreated) {
      const { topicId, name } = decodeTopicCreated(entry.meta);
      this.#created(topicId, name);
    } else if (entry.type === EntryType.topicDeleted) {
      const id = decodeTopicDeleted(entry.meta);
      const name = this.#nameById.get(id);
      if (name === undefined) return;
      this.#nameById.delete(id);
      this.drop(name);
    }
  }
}
