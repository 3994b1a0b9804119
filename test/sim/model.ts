import assert from 'node:assert/strict';
import type { Command } from '../../src/replica/consensus.ts';
import { EntryType, entryVersion } from '../../src/state/entry-types.ts';
import { StateMachine } from '../../src/state/state-machine.ts';
import { readStoredBatch, type StoredBatchFacts } from '../../src/state/stored-batch.ts';

interface Proposed {
  readonly term: number;
  readonly command: Command;
}

/** One stored batch as the model remembers it. */
export interface ModelBatch {
  readonly baseOffset: number;
  readonly endOffset: number;
  readonly bytes: Buffer;
}

const noop: Command = { type: EntryType.noop, meta: Buffer.alloc(0) };

/**
 * What a log of one voter must hold: every entry in the order in which it was proposed. After a
 * stop some of the newest may be missing, those that were not acknowledged, and nothing else.
 */
export class Model {
  readonly #mayLoseTail: boolean;
  #state = new StateMachine();
  #batches = new Map<number, ModelBatch[]>();
  #sequences = new Set<string>();
  #proposed: Proposed[] = [];
  /** Everything in the state, to begin anew from where a tail was lost. */
  #history: Proposed[] = [];
  /** Index of the last entry that was acknowledged or seen after a start. */
  #durableIndex = 0;
  /** With `sync=interval`, acknowledged entries beyond this may be lost. */
  #keptIndex = 0;
  #nextTerm = 0;

  constructor(mayLoseTail = false) {
    this.#mayLoseTail = mayLoseTail;
  }

  /** The state after everything that was acknowledged. */
  get state(): StateMachine {
    return this.#state;
  }

  get batches(): ReadonlyMap<number, readonly ModelBatch[]> {
    return this.#batches;
  }

  get durableIndex(): number {
    return this.#durableIndex;
  }

  get lastIndex(): number {
    return this.#durableIndex + this.#proposed.length;
  }

  propose(command: Command): number {
    this.#proposed.push({ term: this.#nextTerm, command: copyOf(command) });
    return this.lastIndex;
  }

  /** Everything up to this index is durable from now on. */
  acknowledge(index: number): void {
    while (this.#durableIndex < index) {
      const next = this.#proposed.shift();
      assert(next !== undefined, 'nothing is acknowledged that was not proposed');
      this.#apply(next);
    }
  }

  /** All that was acknowledged is durable from now on, whatever the setting. */
  keep(): void {
    this.#keptIndex = this.#durableIndex;
  }

  /** Proposals that were refused, and those after them, never reached the disk. */
  dropPlans(): void {
    this.#proposed = [];
  }

  /**
   * A start found entries, and added the first one of its own term, as starts before it may have
   * done that did not come to their end. What was proposed and is not among them is lost; what was
   * found counts as durable.
   */
  started(appliedIndex: number, terms: readonly number[]): void {
    const known = this.#commonTerms(terms);
    const fresh = terms.slice(known);
    assert(fresh.length > 0, 'each start has a term of its own');
    const lastIndex = appliedIndex - fresh.length;
    if (this.#mayLoseTail && lastIndex >= this.#keptIndex) this.#rollBack(lastIndex);
    assert(
      lastIndex >= this.#durableIndex,
      `entries ${lastIndex + 1} to ${this.#durableIndex} were acknowledged and are lost`,
    );
    assert(lastIndex <= this.lastIndex, 'a start finds nothing that was not proposed');
    this.acknowledge(lastIndex);
    this.#proposed = [];
    for (const term of fresh) {
      assert(term > this.#nextTerm, 'terms only grow');
      this.#nextTerm = term;
      this.#apply({ term, command: noop });
    }
    // Its own first entry may not be synced yet.
    this.#keptIndex = this.#durableIndex - 1;
  }

  /** How many of the terms were known before. A lost tail may take the last of them along. */
  #commonTerms(terms: readonly number[]): number {
    const ours = this.state.terms;
    let common = 0;
    while (common < ours.length && ours[common] === terms[common]) common++;
    assert(common === ours.length || this.#mayLoseTail, 'no term is lost');
    return common;
  }

  #rollBack(index: number): void {
    if (index >= this.#durableIndex) return;
    const kept = this.#history.slice(0, index);
    this.#state = new StateMachine();
    this.#batches = new Map();
    this.#sequences = new Set();
    this.#history = [];
    this.#durableIndex = 0;
    for (const proposed of kept) this.#apply(proposed);
  }

  #apply(proposed: Proposed): void {
    const { term, command } = proposed;
    this.#durableIndex++;
    if (this.#mayLoseTail) this.#history.push(proposed);
    const partitions = command.partitions ?? [];
    const batches = command.batches ?? [];
    this.state.apply({
      ...command,
      version: entryVersion,
      term,
      index: this.#durableIndex,
      batches,
      partitions,
    });
    for (let i = 0; i < batches.length; i++) this.#remember(partitions[i]!, batches[i]!);
  }

  /** A batch of an idempotent producer is stored once, however often it is sent. */
  #storeOnce(partition: number, batch: StoredBatchFacts): void {
    const key = `${partition}/${batch.producerId}/${batch.firstSequence}`;
    assert(!this.#sequences.has(key), `batch ${key} is stored twice`);
    this.#sequences.add(key);
  }

  #remember(partition: number, bytes: Buffer): void {
    if (!this.state.topics.partitions.exists(partition)) return;
    const facts = readStoredBatch(bytes);
    const { baseOffset, lastOffsetDelta } = facts;
    const stored = this.#batches.get(partition) ?? [];
    this.#batches.set(partition, stored);
    if (facts.producerId >= 0) this.#storeOnce(partition, facts);
    stored.push({ baseOffset, endOffset: baseOffset + lastOffsetDelta + 1, bytes });
  }
}

/** The planner may go on using its buffers; the model keeps what was proposed. */
function copyOf(command: Command): Command {
  return {
    type: command.type,
    meta: Buffer.from(command.meta),
    batches: (command.batches ?? []).map((batch) => Buffer.from(batch)),
    partitions: [...(command.partitions ?? [])],
  };
}
