import { isSetting, settingNames } from './broker-configs.ts';
import { environmentName, environmentPrefix, nearest } from './names.ts';
import { settingsTable } from './settings.ts';

/** Where settings come from, and how each source is read. */

/** One setting as some source gives it. */
export interface Given {
  readonly name: string;
  readonly value: unknown;
  /** Where it stands, for the person who has to correct it. */
  readonly where: string;
}

export interface Source {
  readonly given: readonly Given[];
  readonly problems: readonly string[];
}

/** A flag of the command line that names a setting: `--listen` or `--set listen`. */
export interface SettingFlag {
  readonly flag: string;
  readonly name: string;
  readonly text: string;
}

export interface SettingsFile {
  readonly path: string;
  readonly text: string;
}

/** A file is one JSON object of settings; its values have the types of JSON. */
export function fromFile({ path, text }: SettingsFile): Source {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    return { given: [], problems: [`${path}: is not JSON: ${syntaxError(error, text)}`] };
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    return { given: [], problems: [`${path}: must hold one object, {"NAME": VALUE, ...}`] };
  }
  const given = Object.entries(content).map(([name, value]) => {
    return { name, value: value as unknown, where: `${path}: ${jsonPointer(name)}` };
  });
  return { given, problems: [] };
}

/** Nothing but settings may have the prefix: a misspelt one would be ignored in silence. */
export function fromEnvironment(environment: Readonly<Record<string, string | undefined>>): Source {
  const byVariable = new Map(settingNames.map((name) => [environmentName(name), name]));
  const given: Given[] = [];
  const problems: string[] = [];
  for (const [variable, text] of Object.entries(environment)) {
    if (!variable.startsWith(environmentPrefix) || text === undefined) continue;
    const name = byVariable.get(variable);
    if (name === undefined) problems.push(`${variable}: ${unknownVariable(variable)}`);
    else given.push({ name, value: typedValue(name, text), where: variable });
  }
  return { given, problems };
}

export function fromFlags(flags: readonly SettingFlag[]): Source {
  const given: Given[] = [];
  const problems: string[] = [];
  const flagOf = new Map<string, string>();
  for (const { flag, name, text } of flags) {
    const earlier = flagOf.get(name);
    if (earlier === undefined) given.push({ name, value: typedValue(name, text), where: flag });
    else problems.push(`${flag}: given twice (${earlier})`);
    flagOf.set(name, flag);
  }
  return { given, problems };
}

/**
 * Text as the type of its setting, where it is exactly that. Anything else stays text, which the
 * schema then refuses with the text as it was given.
 */
function typedValue(name: string, text: string): unknown {
  if (!isSetting(name)) return text;
  const { type } = settingsTable[name];
  if (type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** Kubernetes gives containers such variables for a service that is called "keylane". */
const serviceLink = /^KEYLANE_(SERVICE_HOST|SERVICE_PORT|PORT)(_[A-Z0-9_]+)?$/;

function unknownVariable(variable: string): string {
  const meant = nearest(variable, settingNames.map(environmentName));
  if (meant !== undefined) return `unknown setting; did you mean ${meant}?`;
  if (serviceLink.test(variable)) {
    return 'unknown setting; it comes from Kubernetes: set enableServiceLinks to false in the pod';
  }
  return `unknown setting; variables that begin with ${environmentPrefix} are settings`;
}

function jsonPointer(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The parser's message, with line and column where it names a position. */
function syntaxError(error: unknown, text: string): string {
  const message = error instanceof Error ? error.message : String(error);
  const position = / at position (\d+)/.exec(message)?.[1];
  if (position === undefined || message.includes('line')) return message;
  const before = text.slice(0, Number(position)).split('\n');
  return `${message} (line ${before.length} column ${before.at(-1)!.length + 1})`;
}
