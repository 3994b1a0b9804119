/**
 * Values of Kafka configurations: their types, how their text is read, and Kafka's words for what
 * is wrong with it (org.apache.kafka.common.config.ConfigDef).
 */

export type KafkaType = 'BOOLEAN' | 'STRING' | 'INT' | 'LONG' | 'DOUBLE' | 'LIST';

/** As DescribeConfigs numbers the types (DescribeConfigsResponse.ConfigType). */
export const kafkaTypeCode = {
  BOOLEAN: 1,
  STRING: 2,
  INT: 3,
  LONG: 5,
  DOUBLE: 6,
  LIST: 7,
} as const satisfies Record<KafkaType, number>;

/** What Kafka writes for "no limit" in a LONG. */
export const maxLongText = '9223372036854775807';

export interface ValueRule {
  readonly type: KafkaType;
  /** Bounds of a number, both inclusive. */
  readonly min?: number;
  readonly max?: number;
  /** The only values that a string, or each element of a list, may have. */
  readonly values?: readonly string[];
  /** What is wrong with an otherwise good value. */
  readonly check?: (value: string) => string | undefined;
}

export type ParsedValue = { readonly text: string } | { readonly error: string };

/** Reads a value. `text` is its canonical form: what is stored, compared and shown. */
export function parseValue(name: string, given: string, rule: ValueRule): ParsedValue {
  const invalid = (why: string, value: string): ParsedValue => ({
    error: `Invalid value ${value} for configuration ${name}: ${why}`,
  });
  const trimmed = given.trim();
  const text = canonical(trimmed, rule.type);
  if (text === undefined) return invalid(notOfType(rule.type), given);
  const parts = rule.type === 'LIST' ? splitList(text) : [text];
  for (const part of parts) {
    const why = choiceError(part, rule);
    if (why !== undefined) return invalid(why, part);
  }
  const why = rangeError(text, rule) ?? rule.check?.(text);
  if (why === undefined) return { text };
  return invalid(why, rule.type === 'LIST' ? `[${parts.join(', ')}]` : text);
}

export function splitList(text: string): string[] {
  return text === '' ? [] : text.split(',').map((part) => part.trim());
}

/** The one way in which a value is written; undefined if the text is none of the type. */
function canonical(trimmed: string, type: KafkaType): string | undefined {
  switch (type) {
    case 'BOOLEAN': {
      const text = trimmed.toLowerCase();
      return text === 'true' || text === 'false' ? text : undefined;
    }
    case 'INT':
      return canonicalInteger(trimmed, 32);
    case 'LONG':
      return canonicalInteger(trimmed, 64);
    case 'DOUBLE':
      return /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(trimmed)
        ? doubleText(Number(trimmed))
        : undefined;
    case 'STRING':
      return trimmed;
    case 'LIST':
      return splitList(trimmed).join(',');
  }
}

function notOfType(type: KafkaType): string {
  return type === 'BOOLEAN'
    ? 'Expected value to be either true or false'
    : `Not a number of type ${type}`;
}

function canonicalInteger(text: string, bits: number): string | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const number = BigInt(text.replace('+', ''));
  return BigInt.asIntN(bits, number) === number ? String(number) : undefined;
}

function rangeError(text: string, { min, max }: ValueRule): string | undefined {
  if (min !== undefined && Number(text) < min) return `Value must be at least ${min}`;
  if (max !== undefined && Number(text) > max) return `Value must be no more than ${max}`;
  return undefined;
}

function choiceError(value: string, { values }: ValueRule): string | undefined {
  if (values === undefined || values.includes(value)) return undefined;
  return `String must be one of: ${values.join(', ')}`;
}

/** As Java prints a double: whole ones with a fraction of zero. */
function doubleText(value: number): string {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}
