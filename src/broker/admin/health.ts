import type { Outcome } from '../../replica/group-commit.ts';
import type { Broker } from '../broker.ts';
import type { TenantView } from './tenants-port.ts';

export interface Health {
  readonly status: 'ok' | 'failing';
  /** Why not, in words. */
  readonly reasons: readonly string[];
  /** It can serve: it leads, or follows a leader. */
  readonly ready: boolean;
  /** Node id of the leader, -1 while this node knows none. */
  readonly leader: number;
  /** Whether a majority of the voters is there, as far as this node knows. */
  readonly quorum: boolean;
}

/** Of a node: that of the default tenant, and which others are not well here. */
export interface NodeHealth extends Health {
  readonly tenants: {
    /** This node cannot serve them, so it is failing. */
    readonly failed: readonly string[];
    /** It knows no leader of these at this moment: they are new, or have no majority. */
    readonly leaderless: readonly string[];
  };
}

/** What is planned is on disk long before this, unless the disk hangs. */
const commitMsMax = 5000;

/** Whether the broker does what it is for: take records and make them durable. */
export async function healthOf(broker: Broker, isStopping: boolean): Promise<Health> {
  const { replica, clock, nodes } = broker;
  const isLed = replica.raft.isLed(clock.monotonicMs());
  const quorum = replica.mayAnswer || replica.consensus.isAsleep || isLed;
  const facts = { ready: quorum && !isStopping, leader: nodes.leaderId, quorum };
  const failing = (why: readonly string[]): Health => ({
    status: 'failing',
    reasons: why,
    ...facts,
  });
  if (isStopping) return failing(['it is stopping']);
  const { disk } = replica;
  const reasons: string[] = [];
  if (disk.isCritical) reasons.push('the disk is full: the reserve is given up');
  else if (disk.isLow) reasons.push('the disk is nearly full: produce is refused');
  if (!quorum) reasons.push('there is no leader: nothing can be committed');
  // What a follower has in hand is the leader's to commit.
  const outcome = replica.isLeader ? await outcomeOfPlanned(broker) : 'applied';
  if (outcome === 'late') reasons.push(`what is ${commitMsMax} ms old is not on disk yet`);
  else if (outcome !== 'applied') reasons.push(`the journal refused an entry: ${outcome}`);
  return reasons.length === 0 ? { status: 'ok', reasons, ...facts } : failing(reasons);
}

/** `others`: the tenants beside the default one, whose health is given. */
export function withTenants(health: Health, others: readonly TenantView[]): NodeHealth {
  const failed = others.filter(({ failure }) => failure !== null);
  const leaderless = others.filter(({ failure, leaderId }) => failure === null && leaderId === -1);
  const reasons = failed.map(({ name, failure }) => `tenant ${name} is not served: ${failure}`);
  return {
    ...health,
    ...(failed.length > 0 && { status: 'failing', reasons: [...health.reasons, ...reasons] }),
    tenants: {
      failed: failed.map(({ name }) => name),
      leaderless: leaderless.map(({ name }) => name),
    },
  };
}

/** What comes of all that is under way to the disk now. */
function outcomeOfPlanned({ replica, clock }: Broker): Promise<Outcome | 'late'> {
  return new Promise((resolve) => {
    const cancel = clock.after(commitMsMax, () => resolve('late'));
    replica.afterPlanned((outcome) => {
      cancel();
      resolve(outcome);
    });
  });
}
