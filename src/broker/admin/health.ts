import type { Outcome } from '../../replica/group-commit.ts';
import type { Broker } from '../broker.ts';

export interface Health {
  readonly status: 'ok' | 'failing';
  /** Why not, in words. */
  readonly reasons: readonly string[];
}

/** What is planned is on disk long before this, unless the disk hangs. */
const commitMsMax = 5000;

/** Whether the broker does what it is for: take records and make them durable. */
export async function healthOf(broker: Broker, isStopping: boolean): Promise<Health> {
  if (isStopping) return failing(['it is stopping']);
  const { disk } = broker.replica;
  const reasons: string[] = [];
  if (disk.isCritical) reasons.push('the disk is full: the reserve is given up');
  else if (!disk.mayGrow(1)) reasons.push('the disk is nearly full: produce is refused');
  const outcome = await outcomeOfPlanned(broker);
  if (outcome === 'late') reasons.push(`what is ${commitMsMax} ms old is not on disk yet`);
  else if (outcome !== 'applied') reasons.push(`the journal refused an entry: ${outcome}`);
  return reasons.length === 0 ? { status: 'ok', reasons } : failing(reasons);
}

function failing(reasons: readonly string[]): Health {
  return { status: 'failing', reasons };
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
