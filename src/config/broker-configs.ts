import { deliveryConfigNames } from './delivery-configs.ts';
import { type KafkaType, maxLongText, splitList, type ValueRule } from './kafka-values.ts';
import type { Setting, TextFormat } from './setting.ts';
import { type SettingName, type Settings, settingsTable } from './settings.ts';
import { brokerSettingOf } from './topic-settings.ts';

/**
 * The broker's settings as configurations in Kafka's sense: with types, and told apart by whether
 * they can be changed while the broker runs.
 */

const table: Readonly<Record<string, Setting>> = settingsTable;
const maxInt = 2 ** 31 - 1;

/** What every look reads anew; everything else is read once, at the start. */
const dynamic: ReadonlySet<string> = new Set<SettingName>([
  ...Object.values(brokerSettingOf),
  'producer.id.expiration.ms',
  ...deliveryConfigNames,
  'keyed.topics',
  'keyed.memory.bytes',
  'keyed.rebalance.wait.ms',
  'lease.warn.ms',
]);

/** What nobody is shown. */
export function isSecret(name: string): boolean {
  return name === 'cluster.secret' || name === 'admin.secret';
}

export function isSetting(name: string): name is SettingName {
  return Object.hasOwn(settingsTable, name);
}

export function isDynamic(name: string): boolean {
  return dynamic.has(name);
}

export const settingNames = Object.keys(settingsTable) as readonly SettingName[];

export function settingDoc(name: SettingName): string {
  return table[name]!.doc;
}

export function settingDefault(name: SettingName): string {
  return settingText(table[name]!.default);
}

/** The largest number that a setting may have stands for Kafka's, "no limit". */
export function settingText(value: Settings[SettingName]): string {
  return value === Number.MAX_SAFE_INTEGER ? maxLongText : String(value);
}

/** The value that a text stands for: the inverse of `settingText`. */
export function settingFromText(name: string, text: string): string | number | boolean {
  switch (table[name]?.type) {
    case 'integer':
      return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
    case 'boolean':
      return text === 'true';
    default:
      return text;
  }
}

export function settingRule(name: SettingName): ValueRule {
  const setting = table[name]!;
  switch (setting.type) {
    case 'boolean':
      return { type: 'BOOLEAN' };
    case 'string':
      return {
        type: 'STRING',
        ...(setting.values && { values: setting.values }),
        ...(setting.format && { check: formatCheck(setting.format) }),
      };
    case 'list':
      return { type: 'LIST', check: listCheck(setting.format) };
    case 'integer': {
      const { min, max } = setting;
      const isLong = max > maxInt;
      const isBounded = max !== maxInt && max !== Number.MAX_SAFE_INTEGER;
      return { type: isLong ? 'LONG' : 'INT', min, ...(isBounded && { max }) };
    }
  }
}

function formatCheck({ pattern, words }: TextFormat): (text: string) => string | undefined {
  const isGood = new RegExp(pattern, 'u');
  return (text) => (isGood.test(text) ? undefined : `Value must be ${words}`);
}

function listCheck(format: TextFormat): (text: string) => string | undefined {
  const check = formatCheck(format);
  return (text) =>
    splitList(text)
      .map(check)
      .find((why) => why !== undefined);
}

/** What Kafka lets choose and is fixed here; shown because clients look for it. */
export interface BrokerFact {
  readonly name: string;
  readonly type: KafkaType;
  readonly value: string;
  readonly doc: string;
}

export function brokerFacts(settings: Settings): BrokerFact[] {
  return [
    fact('broker.id', 'INT', String(settings['node.id']), 'The same as node.id.'),
    fact('default.replication.factor', 'INT', '1', 'All voters have a replica of everything.'),
    fact('delete.topic.enable', 'BOOLEAN', 'true', 'Topics can be deleted.'),
    fact('log.cleanup.policy', 'LIST', 'delete', 'cleanup.policy of topics.'),
    fact('log.dirs', 'STRING', settings.data, 'The folder of the data.'),
    fact('log.retention.hours', 'INT', '168', 'The default of log.retention.ms, in hours.'),
    fact(
      'unclean.leader.election.enable',
      'BOOLEAN',
      'false',
      'unclean.leader.election.enable of topics.',
    ),
  ];
}

function fact(name: string, type: KafkaType, value: string, doc: string): BrokerFact {
  return { name, type, value, doc };
}
