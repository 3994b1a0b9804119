import type { ErrorCode } from '../protocol/error-codes.ts';
import { deleteGroupsRequest, deleteGroupsResponse } from '../protocol/schema/42-delete-groups.ts';
import { defineHandler } from './handler.ts';

/** Answered when all of it is durable. A group that is named twice is deleted once. */
export const deleteGroups = defineHandler({
  request: deleteGroupsRequest,
  response: deleteGroupsResponse,
  versions: [0, 2],
  handle(request, { broker }, answer) {
    const groupIds = [...new Set(request.groupsNames)];
    const errors = new Map<string, ErrorCode>();
    const answerAll = () => {
      const results = groupIds.map((groupId) => ({ groupId, errorCode: errors.get(groupId)! }));
      answer({ throttleTimeMs: 0, results });
    };
    if (groupIds.length === 0) answerAll();
    broker.groups.run((coordinator, now) => {
      for (const groupId of groupIds) {
        coordinator.deleteGroup(groupId, now, (errorCode) => {
          errors.set(groupId, errorCode);
          if (errors.size === groupIds.length) answerAll();
        });
      }
    });
  },
});
