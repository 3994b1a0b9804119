import {
  brokerFacts,
  isDynamic,
  isSetting,
  settingDefault,
  settingDoc,
  settingNames,
  settingRule,
  settingText,
} from '../config/broker-configs.ts';
import { deliveryConfigNames } from '../config/delivery-configs.ts';
import { isKeyedTopic } from '../config/delivery-settings.ts';
import type { KafkaType } from '../config/kafka-values.ts';
import type { SettingName } from '../config/settings.ts';
import { brokerSettingFor, topicConfigs } from '../config/topic-configs.ts';
import { kafkaDefaults, topicSynonyms } from '../config/topic-synonyms.ts';
import type { Broker } from './broker.ts';

/** Where a value comes from, as Kafka numbers it (DescribeConfigsResponse.ConfigSource). */
export const ConfigSource = {
  topic: 1,
  dynamicBroker: 2,
  dynamicDefaultBroker: 3,
  staticBroker: 4,
  default: 5,
  group: 8,
} as const;

/** A value that counts, or would count if those before it were not there. */
export interface Synonym {
  readonly name: string;
  readonly value: string;
  readonly source: number;
}

/** One configuration with its effective value. */
export interface ConfigEntry {
  readonly name: string;
  readonly value: string;
  readonly source: number;
  readonly readOnly: boolean;
  readonly type: KafkaType;
  readonly doc: string;
  /** What decides, first. Empty where Kafka has nothing by that name to fall back to. */
  readonly synonyms: readonly Synonym[];
}

/** All configurations of a topic with these overrides. */
export function topicConfigEntries(
  topicName: string,
  overrides: ReadonlyMap<string, string>,
  broker: Broker,
): ConfigEntry[] {
  return [...topicConfigs].map(([name, config]) => {
    const chain = topicFallbacks(name, config.default, broker);
    // What keyed.topics says stands above delivery.mode of the broker, as in resolveDelivery.
    if (name === 'delivery.mode' && isKeyedTopic(topicName, broker.settings)) {
      chain.unshift({ ...settingSynonyms('keyed.topics', broker)[0]!, value: 'keyed' });
    }
    const override = overrides.get(name);
    if (override !== undefined)
      chain.unshift({ name, value: override, source: ConfigSource.topic });
    return {
      name,
      value: chain[0]!.value,
      source: chain[0]!.source,
      // As in Kafka, where it says that a setting of the broker needs a restart.
      readOnly: false,
      type: config.type,
      doc: config.doc,
      synonyms: chain.filter((synonym) => synonym.name !== ''),
    };
  });
}

/** Those of a group with these overrides. A topic's own stand between them and the broker's. */
export function groupConfigEntries(
  overrides: ReadonlyMap<string, string>,
  broker: Broker,
): ConfigEntry[] {
  return deliveryConfigNames.map((name) => {
    const synonyms = settingSynonyms(name, broker);
    const value = overrides.get(name);
    if (value !== undefined) synonyms.unshift({ name, value, source: ConfigSource.group });
    return settingEntry(name, synonyms);
  });
}

/** What counts without an override, of which there is always one. Not listed if it has no name. */
function topicFallbacks(topicConfig: string, standard: string, broker: Broker): Synonym[] {
  const setting = brokerSettingFor(topicConfig);
  if (setting === undefined) {
    const name = topicSynonyms.get(topicConfig) ?? '';
    return [{ name, value: standard, source: ConfigSource.default }];
  }
  const chain = settingSynonyms(setting, broker);
  // Kafka lists a default only under the name of the configuration that has it.
  const isUnlisted = chain.length === 1 && kafkaDefaults.has(setting);
  return isUnlisted ? [{ ...chain[0]!, name: '' }] : chain;
}

/** All settings of this broker, and what is fixed. */
export function brokerConfigEntries(broker: Broker): ConfigEntry[] {
  const settings = settingNames.map((name) => settingEntry(name, settingSynonyms(name, broker)));
  const facts = brokerFacts(broker.staticSettings).map(({ name, type, value, doc }) => ({
    name,
    value,
    source: ConfigSource.default,
    readOnly: true,
    type,
    doc,
    synonyms: [{ name, value, source: ConfigSource.default }],
  }));
  return [...settings, ...facts].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The cluster-wide defaults that clients have set. */
export function dynamicDefaultEntries(broker: Broker): ConfigEntry[] {
  return [...broker.replica.state.brokerConfigs].flatMap(([name, value]) => {
    if (!isSetting(name)) return [];
    return [settingEntry(name, [{ name, value, source: ConfigSource.dynamicDefaultBroker }])];
  });
}

function settingEntry(name: SettingName, synonyms: readonly Synonym[]): ConfigEntry {
  const { value, source } = synonyms[0]!;
  return {
    name,
    value,
    source,
    readOnly: !isDynamic(name),
    type: settingRule(name).type,
    doc: settingDoc(name),
    synonyms,
  };
}

/**
 * Set by clients for this node, set by them for all nodes, given at start, built in: the first that
 * there is decides.
 */
function settingSynonyms(name: SettingName, broker: Broker): Synonym[] {
  const synonyms: Synonym[] = [];
  const { brokerConfigs, nodeConfigs } = broker.replica.state;
  const own = nodeConfigs.get(String(broker.nodeId))?.get(name);
  if (own !== undefined) {
    synonyms.push({ name, value: own, source: ConfigSource.dynamicBroker });
  }
  const dynamic = brokerConfigs.get(name);
  if (dynamic !== undefined) {
    synonyms.push({ name, value: dynamic, source: ConfigSource.dynamicDefaultBroker });
  }
  const given = settingText(broker.staticSettings[name]);
  const standard = settingDefault(name);
  // A value that equals the default may have been given or not: it makes no difference.
  if (given !== standard) {
    synonyms.push({ name, value: given, source: ConfigSource.staticBroker });
  }
  const last = (synonyms.length > 0 && kafkaDefaults.get(name)) || { name, value: standard };
  synonyms.push({ ...last, source: ConfigSource.default });
  return synonyms;
}
