import { ErrorCode } from '../protocol/error-codes.ts';
import { encodeResponse } from '../protocol/frame.ts';
import {
  type ApiVersionsResponseInput,
  apiVersionsRequest,
  apiVersionsResponse,
} from '../protocol/schema/18-api-versions.ts';
import { defineHandler, type Handler } from './handler.ts';

const versions = [0, 4] as const;

/** What ClientSoftwareName and ClientSoftwareVersion may look like (KIP-511). */
const softwarePattern = /^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$/;

export const apiVersions = defineHandler({
  request: apiVersionsRequest,
  response: apiVersionsResponse,
  versions,
  handle(request, context, answer) {
    const named =
      softwarePattern.test(request.clientSoftwareName) &&
      softwarePattern.test(request.clientSoftwareVersion);
    if (context.apiVersion >= 3 && !named) {
      answer({ errorCode: ErrorCode.INVALID_REQUEST, apiKeys: [] });
      return;
    }
    context.nameSoftware(request.clientSoftwareName);
    answer({ errorCode: ErrorCode.NONE, apiKeys: advertised(context.broker.apis) });
  },
});

/** Derived from the registered handlers, so nothing is told of that is not there. */
function advertised(apis: ReadonlyMap<number, Handler>): ApiVersionsResponseInput['apiKeys'] {
  return [...apis.values()]
    .sort((a, b) => a.apiKey - b.apiKey)
    .map(({ apiKey, advertisedMin, versions: [, maxVersion] }) => {
      return { apiKey, minVersion: advertisedMin, maxVersion };
    });
}

/** The answer to an unknown version of ApiVersions: version 0, with its own range alone. */
export function answerUnsupportedApiVersions(correlationId: number): Buffer[] {
  const [minVersion, maxVersion] = versions;
  return encodeResponse(apiVersionsResponse, 0, correlationId, {
    errorCode: ErrorCode.UNSUPPORTED_VERSION,
    apiKeys: [{ apiKey: apiVersionsRequest.apiKey, minVersion, maxVersion }],
  });
}
