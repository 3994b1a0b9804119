import { ErrorCode } from '../protocol/error-codes.ts';
import type { Outcome } from '../replica/group-commit.ts';

/**
 * What a client of the group coordinator is told of an entry's fate. On both errors it looks for
 * the coordinator anew and tries again; after a full disk it finds this one.
 */
export function coordinatorError(outcome: Outcome): ErrorCode {
  switch (outcome) {
    case 'applied':
      return ErrorCode.NONE;
    case 'disk-full':
      return ErrorCode.COORDINATOR_NOT_AVAILABLE;
    case 'not-leader':
      return ErrorCode.NOT_COORDINATOR;
  }
}
