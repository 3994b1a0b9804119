import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type InitProducerIdResponseInput,
  initProducerIdRequest,
  initProducerIdResponse,
} from '../protocol/schema/22-init-producer-id.ts';
import { defineHandler } from './handler.ts';

export const initProducerId = defineHandler({
  request: initProducerIdRequest,
  response: initProducerIdResponse,
  versions: [0, 5],
  handle(request, { broker }, answer) {
    const { transactionalId, producerId, producerEpoch } = request;
    if (transactionalId !== null) {
      // An empty id is malformed; any other wants transactions, whose coordinator is not here.
      const errorCode =
        transactionalId === '' ? ErrorCode.INVALID_REQUEST : ErrorCode.COORDINATOR_NOT_AVAILABLE;
      answer(refused(errorCode));
      return;
    }
    // Without a transactional id both must be absent (KIP-360 is for transactional producers).
    if (producerId >= 0 !== producerEpoch >= 0) {
      answer(refused(ErrorCode.INVALID_REQUEST));
      return;
    }
    broker.producerIds.next((next) => {
      if (next === undefined) {
        const errorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS;
        answer(refused(errorCode));
      } else {
        answer({
          throttleTimeMs: 0,
          errorCode: ErrorCode.NONE,
          producerId: next,
          producerEpoch: 0,
        });
      }
    });
  },
});

function refused(errorCode: ErrorCode): InitProducerIdResponseInput {
  return { throttleTimeMs: 0, errorCode, producerId: -1, producerEpoch: -1 };
}
