import { assert } from '../../core/assert.ts';
import type { FinishedSet } from '../../state/keyed/finished-set.ts';
import { KeyPause, KeyTable } from './key-table.ts';
import { ReadyQueue } from './ready-queue.ts';
import { type FiledBatch, none, RecordState, RecordStore, unkeyed } from './record-store.ts';
import { Spill } from './spill.ts';

/** Row, slots and name of a short key. */
const keyBytes = 200;

/** Whom a record that is filed was granted to before a restart. */
export interface EarlierGrant {
  readonly rangeId: number;
  /** Told which record its lane number stands for. */
  onFiled(ref: number): void;
}

export interface BoardListener {
  /** A record may be granted in this range, whose key it holds. */
  onContinuation(rangeId: number, ref: number): void;
}

/**
 * The loaded records by key: which wait, which are granted, which key is held by which range. It
 * knows nothing of members, lanes and time.
 *
 * Invariants: the records of a key are linked in the order in which they were appended; first come
 * the granted ones, then those that wait; all granted ones belong to one range, the key's holder.
 */
export class Board {
  readonly store = new RecordStore();
  readonly keys: KeyTable;
  /** The first waiting record of each key that is free, and waiting records without a key. */
  readonly ready: ReadyQueue;
  readonly spill: Spill;
  /** Waiting records that anybody might get, now or after others of their key. */
  readyRecords = 0;
  /** Keys that anybody might get, and waiting records without a key. */
  readyKeys = 0;
  /** Records that somebody has been given, and that are not finished. */
  granted = 0;
  /** By range: waiting records of the keys that it holds, which only its member may get. */
  readonly #heldRecords: number[] = [];
  readonly #listener: BoardListener;
  /**
   * By key: deleted records behind granted ones. If one of those comes back, they
   * are links of the chain again.
   */
  readonly #passed = new Map<number, number[]>();
  /** Links of chains that are deleted records. */
  #deletedRecords = 0;

  constructor(listener: BoardListener, hashSeed: number) {
    this.#listener = listener;
    this.keys = new KeyTable(hashSeed);
    this.spill = new Spill(this.keys);
    this.ready = new ReadyQueue(this.store, (ref) => this.#isFree(ref));
  }

  /** What the records take that wait, about: how many are granted is bounded by other settings. */
  get bytes(): number {
    return (
      (this.store.records - this.granted) * 22 + this.store.batches * 48 + this.keys.size * keyBytes
    );
  }

  heldRecords(rangeId: number): number {
    return this.#heldRecords[rangeId] ?? 0;
  }

  #countHeld(rangeId: number, by: number): void {
    this.#heldRecords[rangeId] = (this.#heldRecords[rangeId] ?? 0) + by;
  }

  continuationsOf(rangeId: number): ReadyQueue {
    const { keys } = this;
    return new ReadyQueue(this.store, (ref) => {
      const key = this.store.key[ref]!;
      return (
        this.store.state[ref] === RecordState.pending &&
        key >= 0 &&
        keys.holder[key] === rangeId &&
        keys.nextPending[key] === ref &&
        keys.pause[key] === KeyPause.none
      );
    });
  }

  /**
   * Batches come in the order of the journal. `earlierGrant` is asked for each record that is not
   * finished. Answers the batch, `none` if nothing of it is alive.
   */
  file(
    batch: FiledBatch,
    finished: FinishedSet,
    earlierGrant: (offset: number) => EarlierGrant | undefined,
  ): number {
    const { store } = this;
    const id = store.add(batch);
    const first = store.first[id]!;
    for (let i = 0; i < batch.offsetCount; i++) {
      const name = batch.keys[i];
      const offset = batch.baseOffset + i;
      if (name === undefined || finished.has(offset)) continue;
      const grant = earlierGrant(offset);
      if (name === null) {
        store.live[id]!++;
        this.#fileUnkeyed(first + i, grant);
        continue;
      }
      const key = this.keys.take(name);
      if (grant === undefined && this.#leavesInLog(key, batch.position, i)) continue;
      store.live[id]!++;
      this.#fileKeyed(first + i, id, key, grant);
    }
    return this.#keepIfAlive(id);
  }

  #leavesInLog(key: number, position: number, index: number): boolean {
    const { holder, pause } = this.keys;
    const isHeld = holder[key] !== none || pause[key] !== KeyPause.none;
    return this.spill.leaves(key, isHeld, position, index);
  }

  /** As `file`, for a batch that is read once more: only records that were left in the log. */
  fileSpilled(batch: FiledBatch, finished: FinishedSet): number {
    const { store, keys, spill } = this;
    const id = store.add(batch);
    for (let i = 0; i < batch.offsetCount; i++) {
      const name = batch.keys[i];
      const key = typeof name === 'string' ? keys.find(name) : undefined;
      if (key === undefined || !spill.takes(key, batch.position, i)) continue;
      // It may have been finished before it could be counted, or deleted since: the end tells.
      if (finished.has(batch.baseOffset + i)) continue;
      store.live[id]!++;
      this.#fileKeyed(store.first[id]! + i, id, key);
      spill.took(key);
    }
    return this.#keepIfAlive(id);
  }

  /** All that was left in the log is loaded, or deleted. */
  endSpilled(): void {
    this.spill.endReading((key) => this.#forgetIfIdle(key));
  }

  #forgetIfIdle(key: number): void {
    const { keys } = this;
    const isFree = keys.holder[key] === none && keys.pause[key] === KeyPause.none;
    if (isFree && keys.isIdle(key)) keys.forget(key);
  }

  #keepIfAlive(id: number): number {
    if (this.store.live[id]! > 0) return id;
    this.store.free(id);
    return none;
  }

  #fileUnkeyed(ref: number, grant: EarlierGrant | undefined): void {
    this.store.key[ref] = unkeyed;
    if (grant !== undefined) {
      this.store.state[ref] = RecordState.granted;
      this.granted++;
      grant.onFiled(ref);
      return;
    }
    this.store.state[ref] = RecordState.pending;
    this.readyRecords++;
    this.readyKeys++;
    this.ready.add(ref);
  }

  #fileKeyed(ref: number, batch: number, key: number, grant?: EarlierGrant): void {
    const { store, keys } = this;
    store.key[ref] = key;
    const tail = keys.tail[key]!;
    if (tail !== none) store.link(tail, ref, batch);
    keys.tail[key] = ref;
    if (grant !== undefined) {
      store.state[ref] = RecordState.granted;
      this.granted++;
      if (keys.holder[key] === none) this.#countHeld(grant.rangeId, keys.pending[key]!);
      keys.holder[key] = grant.rangeId;
      keys.inHand[key]!++;
      grant.onFiled(ref);
      return;
    }
    store.state[ref] = RecordState.pending;
    keys.pending[key]!++;
    const isFirst = keys.nextPending[key] === none;
    if (isFirst) this.#setNext(key, ref, batch);
    const holder = keys.holder[key]!;
    if (holder !== none) {
      this.#countHeld(holder, 1);
      if (isFirst) this.#listener.onContinuation(holder, ref);
    } else if (keys.pause[key] === KeyPause.none) {
      this.readyRecords++;
      if (!isFirst) return;
      this.readyKeys++;
      this.ready.add(ref, batch);
    }
  }

  #setNext(key: number, ref: number, batch: number): void {
    this.keys.nextPending[key] = ref;
    this.keys.nextBatch[key] = batch;
  }

  #isFree(ref: number): boolean {
    if (this.store.state[ref] !== RecordState.pending) return false;
    const key = this.store.key[ref]!;
    if (key < 0) return true;
    const { keys } = this;
    return (
      keys.nextPending[key] === ref &&
      keys.holder[key] === none &&
      keys.pause[key] === KeyPause.none
    );
  }

  /** Whether the record may be granted in this range now. */
  canGrant(ref: number, rangeId: number): boolean {
    if (this.store.state[ref] !== RecordState.pending) return false;
    const key = this.store.key[ref]!;
    if (key < 0) return true;
    const { keys } = this;
    if (keys.nextPending[key] !== ref || keys.pause[key] !== KeyPause.none) return false;
    const holder = keys.holder[key]!;
    return holder === none || holder === rangeId;
  }

  /** Answers the next waiting record of its key, if any: it may go to this range alone. */
  grant(ref: number, rangeId: number, memberNumber: number): number {
    const { store, keys } = this;
    store.state[ref] = RecordState.granted;
    this.granted++;
    const key = store.key[ref]!;
    if (key < 0) {
      this.readyRecords--;
      this.readyKeys--;
      return none;
    }
    const holder = keys.holder[key]!;
    assert(holder === none || holder === rangeId, 'a key has one holder');
    if (holder === none) {
      this.readyRecords -= keys.pending[key]!;
      this.readyKeys--;
      keys.holder[key] = rangeId;
      this.#countHeld(rangeId, keys.pending[key]!);
    }
    keys.pending[key]!--;
    this.#countHeld(rangeId, -1);
    keys.inHand[key]!++;
    keys.lastMember[key] = memberNumber;
    this.#setNext(key, store.next(ref), store.nextBatch(ref));
    this.#passDeleted(key);
    if (keys.spilled[key]! > 0) this.spill.want(key);
    return keys.nextPending[key]!;
  }

  /** The record is done with. If `keeps`, its key stays with its holder until it is let go. */
  finish(ref: number, keeps: boolean): void {
    const { store, keys } = this;
    assert(store.state[ref] === RecordState.granted, 'what is finished was granted');
    this.granted--;
    const key = store.key[ref]!;
    this.#bury(ref);
    if (key < 0) return;
    keys.inHand[key]!--;
    if (keys.inHand[key] === 0) this.#buryPassed(key);
    if (keeps) keys.kept[key]!++;
    if (keys.inHand[key] === 0 && keys.kept[key] === 0) this.release(key);
  }

  /** Takes a kept key from its holder, if this was the last reason. */
  letGo(key: number): void {
    const { keys } = this;
    keys.kept[key]!--;
    if (keys.inHand[key] === 0 && keys.kept[key] === 0) this.release(key);
  }

  /** The record waits again, before all later ones of its key. */
  giveBack(ref: number): void {
    const { store, keys } = this;
    assert(store.state[ref] === RecordState.granted, 'what is given back was granted');
    this.granted--;
    store.state[ref] = RecordState.pending;
    const key = store.key[ref]!;
    if (key < 0) {
      this.readyRecords++;
      this.readyKeys++;
      this.ready.add(ref);
      return;
    }
    keys.inHand[key]!--;
    keys.pending[key]!++;
    this.#countHeld(keys.holder[key]!, 1);
    this.#relink(key, ref);
    const next = keys.nextPending[key]!;
    if (next === none || store.isBefore(ref, next)) {
      this.#setNext(key, ref, store.batchOf[ref]!);
      // It was for the record that was first until now.
      keys.pause[key] = KeyPause.none;
    }
    if (keys.inHand[key] === 0 && keys.kept[key] === 0) this.release(key);
    else this.#listener.onContinuation(keys.holder[key]!, keys.nextPending[key]!);
  }

  /** Another range of the same member holds the key from now on. */
  moveHold(key: number, rangeId: number): void {
    const { keys } = this;
    this.#countHeld(keys.holder[key]!, -keys.pending[key]!);
    keys.holder[key] = rangeId;
    this.#countHeld(rangeId, keys.pending[key]!);
    if (keys.pending[key]! > 0) this.#listener.onContinuation(rangeId, keys.nextPending[key]!);
  }

  /** Nobody holds the key any more: it is ready, or forgotten. */
  release(key: number): void {
    const { keys } = this;
    const holder = keys.holder[key]!;
    if (holder !== none) this.#countHeld(holder, -keys.pending[key]!);
    keys.holder[key] = none;
    if (keys.spilled[key]! > 0) this.spill.want(key);
    if (keys.pending[key] === 0) {
      if (keys.isIdle(key) && keys.pause[key] === KeyPause.none) keys.forget(key);
      return;
    }
    if (keys.pause[key] !== KeyPause.none) return;
    this.readyRecords += keys.pending[key]!;
    this.readyKeys++;
    this.ready.add(keys.nextPending[key]!, keys.nextBatch[key]!);
  }

  /** A key that nobody holds waits for something else than a consumer. */
  pause(key: number, why: KeyPause): void {
    const { keys } = this;
    const isReady = keys.holder[key] === none && keys.pause[key] === KeyPause.none;
    if (isReady) this.readyRecords -= keys.pending[key]!;
    if (isReady && keys.pending[key]! > 0) this.readyKeys--;
    keys.pause[key] = why;
  }

  resume(key: number): void {
    const { keys } = this;
    if (keys.pause[key] === KeyPause.none) return;
    keys.pause[key] = KeyPause.none;
    const holder = keys.holder[key]!;
    if (holder === none) this.release(key);
    else if (keys.pending[key]! > 0) this.#listener.onContinuation(holder, keys.nextPending[key]!);
  }

  /** As `pause`, for a record without a key. */
  park(ref: number): void {
    if (this.store.state[ref] !== RecordState.pending) return;
    this.store.state[ref] = RecordState.parked;
    this.readyRecords--;
    this.readyKeys--;
  }

  unpark(ref: number): void {
    if (this.store.state[ref] !== RecordState.parked) return;
    this.store.state[ref] = RecordState.pending;
    this.readyRecords++;
    this.readyKeys++;
    this.ready.add(ref);
  }

  /** A waiting record is gone: deleted, or a dead letter. If its key was paused, it was for it. */
  delete(ref: number): void {
    const { store, keys } = this;
    this.unpark(ref);
    if (store.state[ref] !== RecordState.pending) return;
    const key = store.key[ref]!;
    if (key < 0) {
      this.readyRecords--;
      this.readyKeys--;
      this.#bury(ref);
      return;
    }
    const isFree = keys.holder[key] === none && keys.pause[key] === KeyPause.none;
    store.state[ref] = RecordState.deleted;
    this.#deletedRecords++;
    keys.pending[key]!--;
    if (isFree) this.readyRecords--;
    if (isFree && keys.pending[key] === 0) this.readyKeys--;
    if (keys.holder[key] !== none) this.#countHeld(keys.holder[key]!, -1);
    if (keys.nextPending[key] !== ref) return;
    this.#passDeleted(key);
    const next = keys.nextPending[key]!;
    if (next === none) {
      keys.pause[key] = KeyPause.none;
      if (keys.spilled[key]! > 0) this.spill.want(key);
      else if (keys.isIdle(key) && keys.holder[key] === none) keys.forget(key);
    } else if (isFree) this.ready.add(next);
    else if (keys.pause[key] !== KeyPause.none) this.resume(key);
    else this.#listener.onContinuation(keys.holder[key]!, next);
  }

  /** The first waiting record is not a deleted one. */
  #passDeleted(key: number): void {
    const { store, keys } = this;
    // Most often there are none, and the next record is not in the processor's cache.
    while (this.#deletedRecords > 0) {
      const ref = keys.nextPending[key]!;
      if (ref === none || store.state[ref] !== RecordState.deleted) return;
      this.#setNext(key, store.next(ref), store.nextBatch(ref));
      if (keys.inHand[key] === 0) this.#bury(ref);
      else this.#passed.set(key, [...(this.#passed.get(key) ?? []), ref]);
    }
  }

  /** Deleted records behind one that came back are part of the chain again. */
  #relink(key: number, back: number): void {
    const passed = this.#passed.get(key);
    if (passed === undefined) return;
    const left = passed.filter((ref) => this.store.isBefore(ref, back));
    this.#passed.set(key, left);
    if (this.keys.inHand[key] === 0) this.#buryPassed(key);
  }

  #buryPassed(key: number): void {
    for (const ref of this.#passed.get(key) ?? []) this.#bury(ref);
    this.#passed.delete(key);
  }

  #bury(ref: number): void {
    const { store, keys } = this;
    const key = store.key[ref]!;
    if (key >= 0 && keys.tail[key] === ref) keys.tail[key] = none;
    if (store.state[ref] === RecordState.deleted) this.#deletedRecords--;
    store.state[ref] = RecordState.gone;
    const batch = store.batchOf[ref]!;
    if (--store.live[batch]! === 0) store.free(batch);
  }
}
