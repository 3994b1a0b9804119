import { ErrorCode } from '../protocol/error-codes.ts';
import { listGroupsRequest, listGroupsResponse } from '../protocol/schema/16-list-groups.ts';
import { Lazy } from '../protocol/slices.ts';
import { defineHandler } from './handler.ts';

export const listGroups = defineHandler({
  request: listGroupsRequest,
  response: listGroupsResponse,
  versions: [0, 5],
  handle(request, { broker }, _answer, answerInSlices) {
    const filter = { states: request.statesFilter, types: request.typesFilter };
    const groups = new Lazy(broker.groups.run((coordinator) => coordinator.list(filter)));
    answerInSlices({ errorCode: ErrorCode.NONE, groups });
  },
});
