import { clipped } from '../core/clipped.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import type { Outcome } from '../replica/group-commit.ts';

/** Why a part of a request is not done, as the answer says it. */
export interface Refusal {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
}

/** A refusal whose message quotes the request. */
export function refuse(errorCode: ErrorCode, message: string): Refusal {
  return { errorCode, errorMessage: clipped(message) };
}

/** What a client is told when an entry of the controller's kind did not come about. */
export function outcomeError(outcome: Outcome): Refusal | undefined {
  switch (outcome) {
    case 'applied':
      return undefined;
    case 'disk-full':
      return {
        errorCode: ErrorCode.KAFKA_STORAGE_ERROR,
        errorMessage: 'The disk of the broker is full',
      };
    case 'not-leader':
      return { errorCode: ErrorCode.NOT_CONTROLLER, errorMessage: 'This node does not lead' };
  }
}
