import type { DeliverySettings } from '../../config/delivery-settings.ts';
import type { ClassicMember } from '../../groups/classic/member.ts';
import { type ClientTraits, traitsOf } from '../../groups/keyed/client-traits.ts';
import type { NewMember } from '../../groups/keyed/member.ts';

/** What is known of members beyond what their groups know: which client library each of them is. */
export class MemberFacts {
  /** By group and member: what its connection said of it. */
  readonly #softwareNames = new Map<string, string>();

  /** A request of a member came from this client library. Answers whether that is new. */
  note(groupId: string, memberId: string, softwareName: string): boolean {
    const key = memberKey(groupId, memberId);
    if (this.#softwareNames.get(key) === softwareName) return false;
    this.#softwareNames.set(key, softwareName);
    return true;
  }

  forget(groupId: string, memberId: string): void {
    this.#softwareNames.delete(memberKey(groupId, memberId));
  }

  traitsOf(groupId: string, member: ClassicMember): ClientTraits {
    return traitsOf({
      softwareName: this.#softwareNames.get(memberKey(groupId, member.memberId)) ?? '',
      clientId: member.facts.clientId,
      protocolNames: member.facts.protocols.map(({ name }) => name),
    });
  }

  /** The member as a dispatcher takes it. */
  of(groupId: string, member: ClassicMember, settings: DeliverySettings): NewMember {
    const { sessionTimeoutMs, rebalanceTimeoutMs } = member.facts;
    const leaseMs =
      settings.leaseMs === 0
        ? Number.POSITIVE_INFINITY
        : Math.max(settings.leaseMs, sessionTimeoutMs, rebalanceTimeoutMs);
    const traits = this.traitsOf(groupId, member);
    const { commitLag } = settings;
    return {
      id: member.memberId,
      traits: commitLag === undefined ? traits : { ...traits, commitLag, isLagDeclared: true },
      leaseMs,
      sessionMs: sessionTimeoutMs,
    };
  }
}

function memberKey(groupId: string, memberId: string): string {
  return `${groupId.length}:${groupId}:${memberId}`;
}
