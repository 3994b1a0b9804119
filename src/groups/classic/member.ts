import { AssertionFailed } from '../../core/assert.ts';
import type { Timer } from '../deadlines.ts';
import type { GroupProtocol, MemberImage } from '../group-image.ts';
import type { JoinGroupResponse, Respond, SyncGroupResponse } from './messages.ts';

export const emptyBuffer: Buffer = Buffer.alloc(0);

/** What a JoinGroup says about its sender; all of it is replaced by the next JoinGroup. */
export interface MemberFacts {
  readonly clientId: string;
  readonly clientHost: string;
  readonly rebalanceTimeoutMs: number;
  readonly sessionTimeoutMs: number;
  /** Names are unique, metadata is owned by the coordinator. */
  readonly protocols: readonly GroupProtocol[];
}

/** One member of a classic group (Kafka's ClassicGroupMember). */
export class ClassicMember {
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  /** Expels the member when it runs out. */
  readonly session: Timer;
  facts: MemberFacts;
  assignment: Buffer = emptyBuffer;
  /** The first and the last generation that an answer told it of, -1 for none. */
  firstGenerationId = -1;
  lastGenerationId = -1;
  /** Since its last assignment an answer told it to rejoin: so it does not give up by itself. */
  isAskedToRejoin = false;
  /**
   * Joined, but in no completed round yet. Such a member cannot heartbeat, so its session is
   * `newMemberJoinTimeoutMs` and runs even while its JoinGroup is parked (KAFKA-6024): clients that
   * gave up and joined again under another id would otherwise pile up in a long round.
   */
  isNew = false;
  /** The parked JoinGroup. Changed by `ClassicGroup` only, which counts them. */
  awaitingJoin: Respond<JoinGroupResponse> | null = null;
  /** The parked SyncGroup. */
  awaitingSync: Respond<SyncGroupResponse> | null = null;

  constructor(
    memberId: string,
    groupInstanceId: string | null,
    facts: MemberFacts,
    session: Timer,
  ) {
    this.memberId = memberId;
    this.groupInstanceId = groupInstanceId;
    this.facts = facts;
    this.session = session;
  }

  /** Whoever waits for the coordinator need not heartbeat; new members are the exception. */
  get isKeptByParkedRequest(): boolean {
    return !this.isNew && (this.awaitingJoin !== null || this.awaitingSync !== null);
  }

  metadata(protocolName: string): Buffer {
    for (const { name, metadata } of this.facts.protocols) {
      if (name === protocolName) return metadata;
    }
    throw new AssertionFailed(`${this.memberId} does not support ${protocolName}`);
  }

  noteGeneration(generationId: number): void {
    if (this.firstGenerationId < 0) this.firstGenerationId = generationId;
    this.lastGenerationId = generationId;
  }

  /** Same protocols in the same order with the same bytes. */
  matches(protocols: readonly GroupProtocol[]): boolean {
    const own = this.facts.protocols;
    return (
      own.length === protocols.length &&
      own.every((protocol, i) => {
        const other = protocols[i]!;
        return protocol.name === other.name && protocol.metadata.equals(other.metadata);
      })
    );
  }

  /** The member's most preferred protocol among the candidates. */
  vote(candidates: ReadonlySet<string>): string {
    for (const { name } of this.facts.protocols) if (candidates.has(name)) return name;
    throw new AssertionFailed(`${this.memberId} supports none of the candidates`);
  }

  image(assignment: Buffer): MemberImage {
    const { memberId, groupInstanceId, firstGenerationId, lastGenerationId } = this;
    const generations = { firstGenerationId, lastGenerationId };
    return { memberId, groupInstanceId, ...this.facts, assignment, generations };
  }
}

/** Owned copies; of protocols with the same name the first one counts, so that votes add up. */
export function copyProtocols(protocols: readonly GroupProtocol[]): GroupProtocol[] {
  const byName = new Map<string, GroupProtocol>();
  for (const { name, metadata } of protocols) {
    if (!byName.has(name)) byName.set(name, { name, metadata: Buffer.from(metadata) });
  }
  return [...byName.values()];
}
