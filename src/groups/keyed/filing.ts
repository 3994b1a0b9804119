import type { Now } from '../deadlines.ts';
import type { EarlierGrant } from './board.ts';
import type { Dispatcher } from './dispatcher.ts';
import { EarlierGrants } from './earlier-grants.ts';
import type { LaneRange } from './lane-range.ts';
import { type FiledBatch, none } from './record-store.ts';

/** How records come to the dispatcher, and how those go that are deleted from the log. */
export class Filing {
  readonly #dispatcher: Dispatcher;
  readonly #earlier = new EarlierGrants();

  constructor(dispatcher: Dispatcher) {
    this.#dispatcher = dispatcher;
  }

  /** Its grants are from before a restart: their records will come. */
  expect(range: LaneRange): void {
    this.#earlier.add(range);
  }

  /** Batches come in the order of the journal, each once. */
  file(batch: FiledBatch, now: Now): void {
    const { partition } = batch;
    const finished = this.#dispatcher.ledger.finished(partition);
    const ask = this.#earlier.isEmpty
      ? () => undefined
      : (offset: number) => this.#earlierGrant(partition, offset);
    const id = this.#dispatcher.board.file(batch, finished, ask);
    this.#skipGaps(batch);
    this.#onFiled(id, now);
  }

  /** A batch is read once more, for records that were left in the log. */
  fileSpilled(batch: FiledBatch, now: Now): void {
    const id = this.#dispatcher.board.fileSpilled(
      batch,
      this.#dispatcher.ledger.finished(batch.partition),
    );
    this.#onFiled(id, now);
  }

  /** `id` is `none` if nothing of the batch was left to deliver. */
  #onFiled(id: number, now: Now): void {
    const { ledger, failures } = this.#dispatcher;
    if (id !== none && ledger.trials.size > 0) failures.onFiled(id, now);
  }

  #earlierGrant(partition: number, offset: number): EarlierGrant | undefined {
    const found = this.#earlier.find(partition, offset);
    if (found === undefined) return undefined;
    const { range, n } = found;
    return { rangeId: range.id, onFiled: (ref) => range.set(n, ref) };
  }

  /** Offsets without a record are finished: nobody will ever commit them. */
  #skipGaps({ partition, baseOffset, keys }: FiledBatch): void {
    const finished = this.#dispatcher.ledger.finished(partition);
    for (let i = 0; i < keys.length; ) {
      if (keys[i] !== undefined || finished.has(baseOffset + i)) {
        i++;
        continue;
      }
      const from = i;
      while (i < keys.length && keys[i] === undefined) i++;
      this.#dispatcher.plan({
        kind: 'skipped',
        partition,
        from: baseOffset + from,
        to: baseOffset + i,
      });
    }
  }

  /** Records below `to` are gone from the log. In somebody's hand they are only marked. */
  deleteBelow(partition: number, to: number): void {
    const finished = this.#dispatcher.ledger.finished(partition);
    if (finished.low >= to) return;
    // Else it would be sent, and there is nothing to send.
    this.#dispatcher.ahead.withdrawAll();
    this.#dispatcher.plan({ kind: 'skipped', partition, from: finished.low, to });
    const { store } = this.#dispatcher.board;
    for (const batch of store.batchesOf(partition)) {
      const last = Math.min(store.count[batch]!, to - store.baseOffset[batch]!);
      const first = store.first[batch]!;
      for (let i = 0; i < last; i++) this.#delete(first + i);
    }
  }

  #delete(ref: number): void {
    this.#dispatcher.failures.forget(ref);
    this.#dispatcher.board.delete(ref);
  }
}
