import {
  brokerFacts,
  isDynamic,
  isSetting,
  settingRule,
  settingText,
} from '../config/broker-configs.ts';
import { validateGroupConfigs } from '../config/group-configs.ts';
import { parseValue, splitList } from '../config/kafka-values.ts';
import type { SettingName } from '../config/settings.ts';
import { topicConfigs, validateTopicConfigs } from '../config/topic-configs.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import { ConfigResource } from '../state/commands.ts';
import type { Broker } from './broker.ts';
import { outcomeError, type Refusal, refuse } from './refusal.ts';
import { isInteger, isNodeId } from './resource-names.ts';
import { topicNameError } from './topic-names.ts';

/** As IncrementalAlterConfigs numbers them (AlterConfigOp.OpType). */
export const ConfigOperation = { set: 0, delete: 1, append: 2, subtract: 3 } as const;

export interface ConfigChange {
  readonly name: string;
  readonly operation: number;
  readonly value: string | null;
}

export interface ResourceChange {
  readonly resourceType: number;
  readonly resourceName: string;
  readonly changes: readonly ConfigChange[];
  /** Overrides that are not named go back to their defaults (AlterConfigs). */
  readonly replacesAll: boolean;
}

/** What is to be stored: of which resource, and which of its overrides change. */
interface Plan {
  readonly resourceType: number;
  /** Topic id, group id, node id, or '' for the defaults of all nodes. */
  readonly resource: string;
  readonly changes: ReadonlyMap<string, string | null>;
}

const operationNames: Readonly<Record<number, string>> = {
  [ConfigOperation.append]: 'APPEND',
  [ConfigOperation.subtract]: 'SUBTRACT',
};

/**
 * Changes configurations of topics, of groups, of this node, and the defaults of all nodes, one
 * request after the other, since a change is judged together with what is set already. Checks and
 * their order are those of Kafka's ConfigAdminManager and ConfigurationControlManager.
 */
export class ConfigChanges {
  readonly #broker: Broker;
  #last: Promise<unknown> = Promise.resolve();

  constructor(broker: Broker) {
    this.#broker = broker;
  }

  /** One answer for each resource: why it is not changed, or undefined. */
  alter(
    resources: readonly ResourceChange[],
    validateOnly: boolean,
  ): Promise<(Refusal | undefined)[]> {
    const repeated = repeatedResources(resources);
    const altered = this.#last.then(() =>
      Promise.all(resources.map((resource) => this.#alterOne(resource, repeated, validateOnly))),
    );
    this.#last = altered;
    return altered;
  }

  async #alterOne(
    resource: ResourceChange,
    repeated: ReadonlySet<string>,
    validateOnly: boolean,
  ): Promise<Refusal | undefined> {
    const plan = requestError(resource, repeated) ?? this.#plan(resource);
    if ('errorCode' in plan) return plan;
    if (validateOnly || plan.changes.size === 0) return undefined;
    const { resourceType, resource: key, changes } = plan;
    return outcomeError(await this.#broker.topics.setConfigs(resourceType, key, changes));
  }

  #plan(resource: ResourceChange): Plan | Refusal {
    switch (resource.resourceType) {
      case ConfigResource.topic:
        return this.#planTopic(resource);
      case ConfigResource.broker:
        return this.#planBroker(resource);
      case ConfigResource.group:
        return this.#planGroup(resource);
      default:
        return invalidRequest(`Unknown resource type ${resource.resourceType}`);
    }
  }

  #planTopic(resource: ResourceChange): Plan | Refusal {
    const { resourceName } = resource;
    if (resourceName === '') return invalidRequest('Default topic resources are not allowed.');
    const why = topicNameError(resourceName);
    if (why !== undefined) {
      return refuse(ErrorCode.INVALID_TOPIC_EXCEPTION, `Topic name is invalid: ${why}`);
    }
    const topic = this.#broker.topics.byName(resourceName);
    const before = topic?.configs ?? new Map<string, string>();
    const after = applyChanges(resource, before, (name) => {
      const config = topicConfigs.get(name);
      return config?.type === 'LIST' ? config.default : undefined;
    });
    if ('errorCode' in after) return after;
    const valid = validateTopicConfigs(after);
    if ('error' in valid) return invalidConfig(valid.error);
    if (topic === undefined) {
      return {
        errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        errorMessage: `The topic '${resourceName}' does not exist.`,
      };
    }
    const changes = difference(before, valid.configs);
    return { resourceType: ConfigResource.topic, resource: topic.id, changes };
  }

  #planGroup(resource: ResourceChange): Plan | Refusal {
    const { resourceName } = resource;
    if (resourceName === '') return invalidRequest('Default group resources are not allowed.');
    const before = this.#broker.replica.state.groupConfigs.get(resourceName) ?? new Map();
    const after = applyChanges(resource, before, () => undefined);
    if ('errorCode' in after) return after;
    const valid = validateGroupConfigs(after);
    if ('error' in valid) return invalidConfig(valid.error);
    const changes = difference(before, valid.configs);
    return { resourceType: ConfigResource.group, resource: resourceName, changes };
  }

  #planBroker(resource: ResourceChange): Plan | Refusal {
    const why = this.#brokerNameError(resource.resourceName);
    if (why !== undefined) return invalidRequest(why);
    const { brokerConfigs, nodeConfigs } = this.#broker.replica.state;
    // "+0" names node 0, as in Kafka, where it is stored under that name and has no effect.
    const node = resource.resourceName === '' ? '' : String(Number(resource.resourceName));
    const before = node === '' ? brokerConfigs : (nodeConfigs.get(node) ?? new Map());
    const after = applyBrokerChanges(resource, before, (name) => {
      const below = node === '' ? undefined : brokerConfigs.get(name);
      return below ?? settingText(this.#broker.staticSettings[name]);
    });
    if ('errorCode' in after) return after;
    const facts = new Set(brokerFacts(this.#broker.staticSettings).map(({ name }) => name));
    const names = [...after.keys()];
    const unknown = names.find((name) => !isSetting(name) && !facts.has(name));
    if (unknown !== undefined) return invalidConfig(`Unknown broker config name: ${unknown}`);
    const fixed = names.filter((name) => !isDynamic(name));
    if (fixed.length > 0) {
      return invalidRequest(`Cannot update these configs dynamically: [${fixed.join(', ')}]`);
    }
    const valid = new Map<string, string>();
    for (const [name, value] of after) {
      if (!isSetting(name)) continue;
      const parsed = parseValue(name, value, settingRule(name));
      // Kafka answers so, though the value and not the request is wrong (KAFKA-13609).
      if ('error' in parsed) return invalidRequest(parsed.error);
      valid.set(name, parsed.text);
    }
    const changes = difference(before, valid);
    return { resourceType: ConfigResource.broker, resource: node, changes };
  }

  #brokerNameError(name: string): string | undefined {
    const { nodeId } = this.#broker;
    // Other nodes of the cluster pass on what they are asked to set.
    const isOther = isInteger(name) && this.#broker.replica.state.nodes.has(Number(name));
    if (name === '' || isNodeId(name, nodeId) || isOther) return undefined;
    return isInteger(name)
      ? `Unexpected broker id, expected ${nodeId}, but received ${Number(name)}`
      : `Node id must be an integer, but it is: ${name}`;
  }
}

function resourceKey({ resourceType, resourceName }: ResourceChange): string {
  return `${resourceType} ${resourceName}`;
}

function repeatedResources(resources: readonly ResourceChange[]): Set<string> {
  const once = new Set<string>();
  const repeated = new Set<string>();
  for (const resource of resources) {
    const key = resourceKey(resource);
    if (once.has(key)) repeated.add(key);
    once.add(key);
  }
  return repeated;
}

/** What is wrong with the request itself (ConfigAdminManager.preprocess). */
function requestError(
  resource: ResourceChange,
  repeated: ReadonlySet<string>,
): Refusal | undefined {
  const { changes } = resource;
  if (repeated.has(resourceKey(resource))) {
    return invalidRequest('Each resource must appear at most once.');
  }
  if (new Set(changes.map(({ name }) => name)).size < changes.length) {
    return invalidRequest('Error due to duplicate config keys');
  }
  const nulls = changes.filter(
    ({ operation, value }) => operation !== ConfigOperation.delete && value === null,
  );
  if (nulls.length > 0) {
    const names = nulls.map(({ name }) => name).join(', ');
    return invalidRequest(`Null value not supported for : ${names}`);
  }
  const strange = changes.find(({ operation }) => operation < 0 || operation > 3);
  return strange && invalidRequest(`Unknown operations type ${strange.operation}`);
}

/** `listBelow` answers what is added to where nothing is set; undefined where there is no list. */
function applyChanges(
  { changes, replacesAll }: ResourceChange,
  before: ReadonlyMap<string, string>,
  listBelow: (name: string) => string | undefined,
): Map<string, string> | Refusal {
  const after = new Map(replacesAll ? [] : before);
  for (const { name, operation, value } of changes) {
    if (operation === ConfigOperation.delete) after.delete(name);
    else if (operation === ConfigOperation.set) after.set(name, value!);
    else {
      const below = listBelow(name);
      if (below === undefined) {
        return invalidConfig(
          `Can't ${operationNames[operation]} to key ${name} because its type is not LIST.`,
        );
      }
      const list = splitList(after.get(name) ?? below);
      after.set(name, changeList(list, operation, splitList(value!)).join(','));
    }
  }
  return after;
}

function changeList(list: string[], operation: number, parts: readonly string[]): string[] {
  if (operation === ConfigOperation.subtract) return list.filter((part) => !parts.includes(part));
  return [...new Set([...list, ...parts])];
}

/** In Kafka this is done in another place than for topics, with words of its own. */
function applyBrokerChanges(
  resource: ResourceChange,
  before: ReadonlyMap<string, string>,
  listBelow: (name: SettingName) => string,
): Map<string, string> | Refusal {
  const isList = (name: string) => isSetting(name) && settingRule(name).type === 'LIST';
  const wrong = resource.changes.find(({ name, operation }) => {
    return operation >= ConfigOperation.append && !isList(name);
  });
  if (wrong !== undefined) {
    const word = operationNames[wrong.operation]!.toLowerCase();
    return invalidConfig(`Config value ${word} is not allowed for config key: ${wrong.name}`);
  }
  return applyChanges(resource, before, (name) => (isSetting(name) ? listBelow(name) : undefined));
}

/** What turns one map into the other; null removes. */
function difference(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): Map<string, string | null> {
  const changes = new Map<string, string | null>();
  for (const name of before.keys()) if (!after.has(name)) changes.set(name, null);
  for (const [name, value] of after) if (before.get(name) !== value) changes.set(name, value);
  return changes;
}

function invalidRequest(message: string): Refusal {
  return refuse(ErrorCode.INVALID_REQUEST, message);
}

function invalidConfig(message: string): Refusal {
  return refuse(ErrorCode.INVALID_CONFIG, message);
}
