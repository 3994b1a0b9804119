import { BrokerError } from '../core/errors.ts';
import { isSetting } from './broker-configs.ts';
import { nearest, settingMeantBy } from './names.ts';
import { allowedWords, type WrongValue, wrongValues } from './schema.ts';
import type { Setting } from './setting.ts';
import { type SettingName, type Settings, settingsTable, withDefaults } from './settings.ts';
import {
  fromEnvironment,
  fromFile,
  fromFlags,
  type Given,
  type SettingFlag,
  type SettingsFile,
  type Source,
} from './sources.ts';

/** Where settings may come from. A later one overrides an earlier one. */
export interface SettingsSources {
  readonly file?: SettingsFile | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly flags: readonly SettingFlag[];
}

/** Pairs that make no sense in the other order. */
const ordered: readonly (readonly [SettingName, SettingName])[] = [
  ['group.min.session.timeout.ms', 'group.max.session.timeout.ms'],
  ['message.max.bytes', 'socket.request.max.bytes'],
  ['connection.inflight.bytes.max', 'inflight.bytes.max'],
  ['num.partitions', 'max.partitions'],
  ['retry.backoff.ms', 'retry.backoff.max.ms'],
];

/**
 * All settings, or a CONFIG_INVALID that lists everything that is wrong with them. A wrong value
 * is an error even where a later source overrides it: it would take effect when that one goes.
 */
export function loadSettings({ file, environment, flags }: SettingsSources): Settings {
  const sources = [
    ...(file === undefined ? [] : [fromFile(file)]),
    fromEnvironment(environment),
    fromFlags(flags),
  ];
  const problems = sources.flatMap((source) => [...source.problems, ...wrongIn(source)]);
  if (problems.length > 0) throw invalidSettings(problems);
  const effective = new Map<string, Given>();
  for (const given of sources.flatMap((source) => source.given)) effective.set(given.name, given);
  const settings = withDefaults(
    Object.fromEntries([...effective].map(([name, { value }]) => [name, value])),
  );
  const disordered = wrongOrder(settings, effective);
  if (disordered.length > 0) throw invalidSettings(disordered);
  return settings;
}

export function invalidSettings(problems: readonly string[]): BrokerError {
  const title =
    problems.length === 1 ? 'a setting is wrong' : `${problems.length} settings are wrong`;
  const message = [`${title}:`, ...problems.map((problem) => `  ${problem}`)].join('\n');
  return new BrokerError('CONFIG_INVALID', message, { problems });
}

function wrongIn({ given }: Source): string[] {
  const values = Object.fromEntries(given.map(({ name, value }) => [name, value]));
  const wrong = new Map(wrongValues(values).map((found) => [found.name, found]));
  return given.flatMap((entry) => {
    const found = wrong.get(entry.name);
    return found === undefined ? [] : [problemText(found, entry)];
  });
}

function problemText({ name, kind }: WrongValue, { value, where }: Given): string {
  if (kind === 'unknown' || !isSetting(name)) {
    const meant = settingMeantBy(name);
    return `${where}: unknown setting${meant === undefined ? '' : `; did you mean ${meant}?`}`;
  }
  const setting: Setting = settingsTable[name];
  const meant =
    setting.type === 'string' ? nearest(String(value), setting.values ?? []) : undefined;
  const question = meant === undefined ? '' : `; did you mean ${meant}?`;
  return `${where}: ${shown(value)} is not allowed; allowed: ${allowedWords(setting)}${question}`;
}

function wrongOrder(settings: Settings, effective: ReadonlyMap<string, Given>): string[] {
  const problems: string[] = [];
  for (const [low, high] of ordered) {
    if (settings[low] <= settings[high]) continue;
    const where = effective.get(low)?.where ?? effective.get(high)?.where ?? low;
    const values = `${low} (${settings[low]}) may not be above ${high} (${settings[high]})`;
    problems.push(`${where}: ${values}`);
  }
  return problems;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}
