import { Ajv, type ErrorObject } from 'ajv';
import type { Setting, TextFormat } from './setting.ts';
import { settingsTable } from './settings.ts';

/** The JSON schema of a settings file, made from the table of settings. */

/** What is wrong with a set of values, by the name of the value. */
export interface WrongValue {
  readonly name: string;
  readonly kind: 'unknown' | 'not allowed';
}

export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(
    Object.entries(settingsTable).map(([name, setting]) => [name, schemaOf(setting)]),
  ),
};

/**
 * It is compiled at each start, for one use. Without the schema of schemas (a test does judge ours)
 * and without polishing the generated code, that takes 22 ms of a slow machine instead of 61.
 */
const quick = { meta: false, validateSchema: false, code: { optimize: false } } as const;
const isValid = new Ajv({ allErrors: true, ...quick }).compile(settingsSchema);

/** Judges values that were given; what is absent has its default. Each name is listed once. */
export function wrongValues(values: object): readonly WrongValue[] {
  if (isValid(values)) return [];
  const wrong = new Map<string, WrongValue>();
  for (const error of isValid.errors ?? []) {
    const found = wrongValue(error);
    wrong.set(found.name, found);
  }
  return [...wrong.values()];
}

/** What a setting may be, in words. */
export function allowedWords(setting: Setting): string {
  switch (setting.type) {
    case 'boolean':
      return 'true or false';
    case 'integer':
      return setting.max === Number.MAX_SAFE_INTEGER
        ? `an integer of at least ${setting.min}`
        : `an integer from ${setting.min} to ${setting.max}`;
    case 'string':
      return setting.values?.join(', ') ?? setting.format?.words ?? 'text';
    case 'list':
      return `${setting.format.words}, with commas between them, or nothing`;
  }
}

function schemaOf(setting: Setting): object {
  switch (setting.type) {
    case 'boolean':
      return { type: 'boolean' };
    case 'integer':
      return { type: 'integer', minimum: setting.min, maximum: setting.max };
    case 'string':
      return {
        type: 'string',
        ...(setting.values === undefined ? {} : { enum: setting.values }),
        ...(setting.format === undefined ? {} : { pattern: setting.format.pattern }),
      };
    case 'list':
      return { type: 'string', pattern: listPattern(setting.format) };
  }
}

/** The texts of a list, with commas and spaces between them; or nothing. */
function listPattern({ pattern }: TextFormat): string {
  const one = `(?:${pattern.replace(/^\^/, '').replace(/\$$/, '')})`;
  return `^(?:${one}(?: *, *${one})*)?$`;
}

function wrongValue({ keyword, params, instancePath }: ErrorObject): WrongValue {
  if (keyword === 'additionalProperties') {
    return { name: String(params['additionalProperty']), kind: 'unknown' };
  }
  // A JSON pointer (RFC 6901) of one step: "/num.partitions".
  const name = instancePath.slice(1).replaceAll('~1', '/').replaceAll('~0', '~');
  return { name, kind: 'not allowed' };
}
