import { ErrorCode } from '../protocol/error-codes.ts';
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from '../protocol/schema/44-incremental-alter-configs.ts';
import { defineHandler } from './handler.ts';

export const incrementalAlterConfigs = defineHandler({
  request: incrementalAlterConfigsRequest,
  response: incrementalAlterConfigsResponse,
  versions: [0, 1],
  handle({ resources, validateOnly }, { broker }, answer) {
    const changes = resources.map(({ resourceType, resourceName, configs }) => ({
      resourceType,
      resourceName,
      changes: configs.map(({ name, configOperation, value }) => ({
        name,
        operation: configOperation,
        value,
      })),
      replacesAll: false,
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
