import { ErrorCode } from '../protocol/error-codes.ts';
import {
  listConfigResourcesRequest,
  listConfigResourcesResponse,
} from '../protocol/schema/74-list-config-resources.ts';
import { ConfigResource } from '../state/commands.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';

/** Version 0 asks for subscriptions of client metrics only; there are none. */
const clientMetrics = 16;

export const listConfigResources = defineHandler({
  request: listConfigResourcesRequest,
  response: listConfigResourcesResponse,
  versions: [0, 1],
  handle({ resourceTypes }, { broker, apiVersion }, answer) {
    const asked = apiVersion === 0 ? [clientMetrics] : resourceTypes;
    const types = asked.length > 0 ? [...new Set(asked)] : Object.values(ConfigResource);
    const configResources = types.flatMap((resourceType) => {
      const names = namesOf(resourceType, broker);
      if (names === undefined) return [undefined];
      return names.map((resourceName) => ({ resourceName, resourceType }));
    });
    const known = configResources.filter((resource) => resource !== undefined);
    const isWhole = known.length === configResources.length;
    answer({
      throttleTimeMs: 0,
      errorCode: isWhole ? ErrorCode.NONE : ErrorCode.UNSUPPORTED_VERSION,
      configResources: isWhole ? known : [],
    });
  },
});

/** Undefined for a type of resource that has no configurations here. */
function namesOf(resourceType: number, broker: Broker): string[] | undefined {
  switch (resourceType) {
    case ConfigResource.topic:
      return [...broker.topics.all()].map(({ name }) => name);
    case ConfigResource.broker:
      return broker.nodes.ids.map(String);
    case ConfigResource.group:
      return [...broker.replica.state.groupConfigs.keys()];
    case clientMetrics:
      return [];
    default:
      return undefined;
  }
}
