/** One setting: its type, default, bounds and meaning, as the tables of settings have them. */

/** A regular expression, and the same in words. */
export interface TextFormat {
  readonly pattern: string;
  readonly words: string;
}
export interface NumberSetting {
  readonly type: 'integer';
  readonly default: number;
  readonly min: number;
  readonly max: number;
  readonly doc: string;
}
export interface StringSetting {
  readonly type: 'string';
  readonly default: string;
  /** The only values allowed, where there are few. */
  readonly values?: readonly string[];
  /** What it must look like, where not every text will do. */
  readonly format?: TextFormat;
  readonly doc: string;
}
export interface BooleanSetting {
  readonly type: 'boolean';
  readonly default: boolean;
  readonly doc: string;
}
/** Texts with commas between them. */
export interface ListSetting {
  readonly type: 'list';
  readonly default: string;
  /** What each of them must look like. */
  readonly format: TextFormat;
  readonly doc: string;
}
export type Setting = NumberSetting | StringSetting | BooleanSetting | ListSetting;

export const maxInt = 2 ** 31 - 1;
export const maxLong = Number.MAX_SAFE_INTEGER;

export function integer(value: number, min: number, max: number, doc: string): NumberSetting {
  return { type: 'integer', default: value, min, max, doc };
}
export function text(value: string, format: TextFormat, doc: string): StringSetting {
  return { type: 'string', default: value, format, doc };
}
export function choice(value: string, values: readonly string[], doc: string): StringSetting {
  return { type: 'string', default: value, values, doc };
}
export function flag(value: boolean, doc: string): BooleanSetting {
  return { type: 'boolean', default: value, doc };
}
export function list(value: string, format: TextFormat, doc: string): ListSetting {
  return { type: 'list', default: value, format, doc };
}
