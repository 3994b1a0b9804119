/**
 * What a field table says, and the types of the values that follow from it.
 *
 * A table lists the fields of one message for all of its versions, in the order of the wire:
 *
 *   message   := field* tagged?          tagged only where the version is flexible
 *   field     := scalar | items | struct
 *   items     := count element*          int32, or unsigned varint of count + 1 where flexible
 *   struct    := present? message        present is one byte (1, or -1 for null) if nullable
 *   tagged    := count (tag size bytes)* unsigned varints, tags ascending (KIP-482)
 *
 * The names of fields are Kafka's own, with a small first letter.
 */

export type ScalarType =
  | 'bool'
  | 'int8'
  | 'int16'
  | 'uint16'
  | 'int32'
  | 'int64'
  | 'float64'
  | 'string'
  | 'uuid'
  | 'bytes'
  | 'records';

interface FieldBase {
  /** The first version that has the field; the message's (or the struct's) first if left out. */
  readonly since?: number;
  /** The last version that has the field, inclusive. */
  readonly until?: number;
  /** Whether null may be written: in every version, or from a version on. */
  readonly nullable?: true | number;
  /** Set on a field that lives in the tagged section of its struct. */
  readonly tag?: number;
  /** Dropped without complaint when a version has no place for it. */
  readonly ignorable?: true;
  /** What a reader finds where the field is absent; the type's zero value if left out. */
  readonly default?: string | number | boolean | null;
  /** False on the one field that keeps its old form in flexible versions: the client id. */
  readonly flexible?: false;
}

export interface ScalarField extends FieldBase {
  readonly type: ScalarType;
}
export interface ItemsField extends FieldBase {
  readonly items: ScalarType | Fields;
}
export interface StructField extends FieldBase {
  readonly struct: Fields;
}
export type Field = ScalarField | ItemsField | StructField;
export interface Fields {
  readonly [name: string]: Field;
}

export interface MessageTable {
  readonly name: string;
  readonly apiKey?: number;
  /** First and last version, both inclusive. */
  readonly versions: readonly [number, number];
  /** The first version with compact lengths and tagged fields, or null. */
  readonly flexibleFrom: number | null;
  readonly fields: Fields;
}

/** The largest int64, as the number nearest to it. Encoders write it as the largest int64. */
export const INT64_MAX = 2 ** 63;

interface ScalarOutput {
  bool: boolean;
  int8: number;
  int16: number;
  uint16: number;
  int32: number;
  int64: number;
  float64: number;
  string: string;
  uuid: string;
  bytes: Buffer;
  records: Buffer;
}

interface ScalarInput extends Omit<ScalarOutput, 'int64' | 'bytes' | 'records'> {
  int64: number | bigint;
  bytes: Uint8Array;
  /** Referenced by what is encoded, never copied: leave the bytes alone until they are sent. */
  records: Buffer | readonly Buffer[];
}

type Nullable<F> = F extends { readonly nullable: unknown } ? null : never;

type ItemOutput<I> = I extends ScalarType
  ? ScalarOutput[I]
  : I extends Fields
    ? FieldsOutput<I>
    : never;

type FieldOutput<F> = F extends { readonly type: infer T extends ScalarType }
  ? ScalarOutput[T]
  : F extends { readonly items: infer I }
    ? ItemOutput<I>[]
    : F extends { readonly struct: infer S extends Fields }
      ? FieldsOutput<S>
      : never;

type FieldsOutput<F extends Fields> = {
  -readonly [K in keyof F]: FieldOutput<F[K]> | Nullable<F[K]>;
};

type ItemInput<I> = I extends ScalarType
  ? ScalarInput[I]
  : I extends Fields
    ? FieldsInput<I>
    : never;

type FieldInput<F> = F extends { readonly type: infer T extends ScalarType }
  ? ScalarInput[T]
  : F extends { readonly items: infer I }
    ? readonly ItemInput<I>[]
    : F extends { readonly struct: infer S extends Fields }
      ? FieldsInput<S>
      : never;

/** Fields that may be left out: those with a default of their own, or not in all versions. */
type OptionalName<F extends Fields> = {
  [K in keyof F]: F[K] extends
    | { readonly default: unknown }
    | { readonly since: number }
    | { readonly until: number }
    | { readonly tag: number }
    ? K
    : never;
}[keyof F];

type FieldsInput<F extends Fields> = {
  readonly [K in Exclude<keyof F, OptionalName<F>>]: FieldInput<F[K]> | Nullable<F[K]>;
} & {
  readonly [K in OptionalName<F>]?: FieldInput<F[K]> | Nullable<F[K]> | undefined;
};

/** What decoding gives: every field of every version, absent ones at their defaults. */
export type Output<M extends MessageTable> = FieldsOutput<M['fields']>;
/** What encoding takes. An `Output` is an `Input`. */
export type Input<M extends MessageTable> = FieldsInput<M['fields']>;
