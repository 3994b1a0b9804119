import { ErrorCode } from '../protocol/error-codes.ts';
import {
  describeGroupsRequest,
  describeGroupsResponse,
} from '../protocol/schema/15-describe-groups.ts';
import { lazyMap } from '../protocol/slices.ts';
import { distinctBy } from './distinct.ts';
import { defineHandler } from './handler.ts';

/** What stands in the answer when nobody asked for the operations. */
const notAsked = -0x80000000;
/**
 * What may be done to a group, one bit per operation (AclOperation's codes; AclEntry
 * .supportedOperations): read, delete, describe, describe configs, alter configs. Without access
 * control everybody may do everything.
 */
const allOperations = [3, 6, 8, 10, 11].reduce((bits, code) => bits | (1 << code), 0);

export const describeGroups = defineHandler({
  request: describeGroupsRequest,
  response: describeGroupsResponse,
  versions: [0, 6],
  handle(request, { broker, apiVersion }, _answer, answerInSlices) {
    const describe = (groupId: string) => {
      const described = broker.groups.run((coordinator) =>
        coordinator.describe(groupId, apiVersion),
      );
      const isAsked = request.includeAuthorizedOperations && described.errorCode === ErrorCode.NONE;
      return { ...described, authorizedOperations: isAsked ? allOperations : notAsked };
    };
    const groupIds = distinctBy(request.groups, (groupId) => groupId);
    answerInSlices({ groups: lazyMap(groupIds, describe) });
  },
});
