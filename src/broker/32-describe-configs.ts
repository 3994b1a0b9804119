import { isSecret } from '../config/broker-configs.ts';
import { kafkaTypeCode } from '../config/kafka-values.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DescribeConfigsRequest,
  type DescribeConfigsResponseInput,
  describeConfigsRequest,
  describeConfigsResponse,
} from '../protocol/schema/32-describe-configs.ts';
import { ConfigResource } from '../state/commands.ts';
import type { Broker } from './broker.ts';
import {
  brokerConfigEntries,
  type ConfigEntry,
  ConfigSource,
  dynamicDefaultEntries,
  groupConfigEntries,
  topicConfigEntries,
} from './config-entries.ts';
import { distinctBy } from './distinct.ts';
import { defineHandler } from './handler.ts';
import { type Refusal, refuse } from './refusal.ts';
import { isInteger, isNodeId } from './resource-names.ts';
import { topicNameError } from './topic-names.ts';

type Result = DescribeConfigsResponseInput['results'][number];
type ResultConfig = Result['configs'][number];
type Resource = DescribeConfigsRequest['resources'][number];

export const describeConfigs = defineHandler({
  request: describeConfigsRequest,
  response: describeConfigsResponse,
  versions: [0, 4],
  handle(request, { broker, apiVersion }, answer) {
    const resources = distinctBy(
      request.resources,
      ({ resourceType, resourceName }) => `${resourceType} ${resourceName}`,
    );
    const results = resources.map((resource): Result => {
      const { resourceType, resourceName, configurationKeys } = resource;
      const found = entriesOf(resource, broker);
      if ('errorCode' in found) return { ...found, resourceType, resourceName, configs: [] };
      // No keys ask for all, as null does (ConfigHelper.describeConfigs).
      const keys = configurationKeys?.length ? new Set(configurationKeys) : undefined;
      const wanted = found.filter(({ name }) => keys?.has(name) ?? true);
      return {
        errorCode: ErrorCode.NONE,
        // As Kafka has it here; elsewhere it is null.
        errorMessage: '',
        resourceType,
        resourceName,
        configs: wanted.map((entry) => describe(entry, request, apiVersion)),
      };
    });
    answer({ throttleTimeMs: 0, results });
  },
});

function describe(
  entry: ConfigEntry,
  { includeSynonyms, includeDocumentation }: DescribeConfigsRequest,
  apiVersion: number,
): ResultConfig {
  const isSensitive = isSecret(entry.name);
  const synonyms = includeSynonyms ? entry.synonyms : [];
  return {
    name: entry.name,
    value: isSensitive ? null : entry.value,
    readOnly: entry.readOnly,
    isSensitive,
    ...(apiVersion === 0
      ? { isDefault: entry.source === ConfigSource.default }
      : { configSource: entry.source }),
    synonyms: isSensitive ? synonyms.map((one) => ({ ...one, value: null })) : synonyms,
    configType: kafkaTypeCode[entry.type],
    documentation: includeDocumentation ? entry.doc : null,
  };
}

function entriesOf(
  { resourceType, resourceName }: Resource,
  broker: Broker,
): readonly ConfigEntry[] | Refusal {
  switch (resourceType) {
    case ConfigResource.topic:
      return topicEntries(resourceName, broker);
    case ConfigResource.broker:
      return brokerEntries(resourceName, broker);
    case ConfigResource.group:
      return groupEntries(resourceName, broker);
    default:
      return {
        errorCode: ErrorCode.INVALID_REQUEST,
        errorMessage: `Unsupported resource type: ${resourceType}`,
      };
  }
}

function topicEntries(name: string, broker: Broker): readonly ConfigEntry[] | Refusal {
  const why = topicNameError(name);
  if (why !== undefined) {
    return refuse(ErrorCode.INVALID_TOPIC_EXCEPTION, `Topic name is invalid: ${why}`);
  }
  const topic = broker.topics.byName(name);
  if (topic !== undefined) return topicConfigEntries(name, topic.configs, broker);
  return {
    errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    errorMessage: `The topic '${name}' does not exist.`,
  };
}

/** A group need not be there to be configured, or described. */
function groupEntries(name: string, broker: Broker): readonly ConfigEntry[] | Refusal {
  if (name === '') return refuse(ErrorCode.INVALID_REQUEST, 'Group name must not be empty');
  return groupConfigEntries(broker.replica.state.groupConfigs.get(name) ?? new Map(), broker);
}

/** By node id everything that counts there; without a name only what is set for all nodes. */
function brokerEntries(name: string, broker: Broker): readonly ConfigEntry[] | Refusal {
  if (name === '') return dynamicDefaultEntries(broker);
  if (isNodeId(name, broker.nodeId)) return brokerConfigEntries(broker);
  return refuse(
    ErrorCode.INVALID_REQUEST,
    isInteger(name)
      ? `Unexpected broker id, expected ${broker.nodeId} or empty string, but received ${name}`
      : `Broker id must be an integer, but it is: ${name}`,
  );
}
