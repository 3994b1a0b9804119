import { ErrorCode } from '../protocol/error-codes.ts';
import { alterConfigsRequest, alterConfigsResponse } from '../protocol/schema/33-alter-configs.ts';
import { ConfigOperation } from './config-changes.ts';
import { defineHandler } from './handler.ts';

export const alterConfigs = defineHandler({
  request: alterConfigsRequest,
  response: alterConfigsResponse,
  versions: [0, 2],
  handle({ resources, validateOnly }, { broker }, answer) {
    const changes = resources.map(({ resourceType, resourceName, configs }) => ({
      resourceType,
      resourceName,
      changes: configs.map((config) => ({ ...config, operation: ConfigOperation.set })),
      replacesAll: true,
    }));
    broker.configChanges.alter(changes, validateOnly).then(
      (refusals) => {
        const responses = resources.map(({ resourceType, resourceName }, i) => ({
          errorCode: ErrorCode.NONE,
          errorMessage: null,
          ...refusals[i],
          resourceType,
          resourceName,
        }));
        answer({ throttleTimeMs: 0, responses });
      },
      (error: unknown) => broker.fatal(error),
    );
  },
});
