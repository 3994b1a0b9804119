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
  if (!(await commits(broker))) {
    reasons.push(`what was written ${commitMsMax} ms ago is not on disk yet`);
  }
  return reasons.length === 0 ? { status: 'ok', reasons } : failing(reasons);
}

function failing(reasons: readonly string[]): Health {
  return { status: 'failing', reasons };
}

/** False where the journal does not finish what is under way. */
function commits({ replica, clock }: Broker): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(commitMsMax, () => resolve(false));
    replica.afterPlanned((outcome) => {
      cancel();
      resolve(outcome === 'applied');
    });
  });
}
