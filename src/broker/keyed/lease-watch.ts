import type { Now } from '../../groups/deadlines.ts';
import { Proof } from '../../groups/keyed/client-traits.ts';
import {
  areBooksRight,
  type Figures,
  figuresOf,
  type Lease,
  leaseOf,
} from '../../groups/keyed/figures.ts';
import type { Member } from '../../groups/keyed/member.ts';
import type { Broker } from '../broker.ts';
import type { Delivery } from './delivery.ts';
import { shownKey } from './shown-key.ts';

const lookMs = 1000;
const booksMs = 10_000;
/** Two intervals of automatic commits, as clients have them by default. */
const silentMsMin = 10_000;

interface Warned {
  readonly leaseStartMs: number;
  readonly nextMs: number;
}

/**
 * Looks at all members once a second: for records that are in hand for long (`lease.warn.ms`), for
 * keys that wait for the commit of a busy consumer, and for counts that went astray.
 */
export class LeaseWatch {
  readonly #broker: Broker;
  readonly #deliveries: () => Iterable<Delivery>;
  readonly #warned = new WeakMap<Member, Warned>();
  /** In which keys were seen to be pinned. */
  readonly #pinned = new WeakSet<Delivery>();
  #nextMs = 0;
  #booksMs = 0;

  constructor(broker: Broker, deliveries: () => Iterable<Delivery>) {
    this.#broker = broker;
    this.#deliveries = deliveries;
  }

  /** Called often; looks once a second. */
  tick(now: Now): void {
    if (now.monotonicMs < this.#nextMs) return;
    this.#nextMs = now.monotonicMs + lookMs;
    this.#look(now);
  }

  /** Whether `delivery.ack=poll` would have helped. */
  wantsPoll(delivery: Delivery): boolean {
    return this.#pinned.has(delivery) && delivery.settings.ack !== 'poll';
  }

  #look(now: Now): void {
    const warnMs = this.#broker.settings['lease.warn.ms'];
    const isBooksDue = now.monotonicMs >= this.#booksMs;
    if (isBooksDue) this.#booksMs = now.monotonicMs + booksMs;
    for (const delivery of this.#deliveries()) {
      if (isBooksDue) this.#checkBooks(delivery);
      let silent: Member | undefined;
      for (const member of delivery.dispatcher.members.values()) {
        if (member.inHand === 0) continue;
        const ageMs = now.monotonicMs - member.leaseStartMs;
        if (warnMs > 0 && ageMs >= warnMs) this.#warn(delivery, member, warnMs, now);
        if (ageMs >= silentMsMin && member.unfinished > member.inHand) silent = member;
      }
      if (silent !== undefined) this.#lookForPinned(delivery, silent);
    }
  }

  /** Once when it is due, and again whenever its age has doubled. */
  #warn(delivery: Delivery, member: Member, warnMs: number, now: Now): void {
    const { leaseStartMs } = member;
    const warned = this.#warned.get(member);
    const isSame = warned?.leaseStartMs === leaseStartMs;
    if (isSame && now.monotonicMs < warned.nextMs) return;
    const lease = leaseOf(delivery.dispatcher, member, now);
    if (lease === undefined) return;
    const nextMs = leaseStartMs + Math.max(lease.ageMs, warnMs) * 2;
    this.#warned.set(member, { leaseStartMs, nextMs });
    this.#broker.log.warn(
      leaseFacts(delivery, lease, this.#broker),
      'a consumer has had a record in hand for long: later records of its key wait',
    );
  }

  /** A member was given no more for long, and has not committed all that it handled. */
  #lookForPinned(delivery: Delivery, member: Member): void {
    if (delivery.settings.ack === 'poll' || this.#pinned.has(delivery)) return;
    if (member.traits.proof === Proof.nothing) return;
    const figures: Figures = figuresOf(delivery.dispatcher);
    if (figures.heldByPinned === 0) return;
    this.#pinned.add(delivery);
    const { pinnedKeys, heldByPinned } = figures;
    this.#broker.keyed.notices.onPinned(delivery, {
      memberId: member.id,
      handledNotCommitted: member.unfinished - member.inHand,
      pinnedKeys,
      recordsWaiting: heldByPinned,
    });
  }

  #checkBooks({ groupId, topic, dispatcher }: Delivery): void {
    const { invariants } = this.#broker.keyed;
    invariants.checks.books++;
    if (areBooksRight(dispatcher)) return;
    invariants.violated('books', () => ({ groupId, topic: topic.name }));
  }
}

/** A lease as log lines name it. */
function leaseFacts({ groupId, topic }: Delivery, lease: Lease, broker: Broker): object {
  const { member, ageMs, partition, offset } = lease;
  return {
    groupId,
    topic: topic.name,
    ...shownKey(lease.key),
    memberId: member.id,
    client: member.traits.name,
    ageMs: Math.round(ageMs),
    partition: broker.replica.state.topics.partitions.index(partition),
    offset,
  };
}
