import { serialKey } from './ordering-keys.ts';

/** A key as people and programs can read it. */
export interface ShownKey {
  /** Undefined where the record has no key, or is not loaded. */
  readonly key?: string;
  /** Its bytes, where they are no text. */
  readonly keyHex?: string;
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/** `name` is the key as dispatchers have it (see ordering-keys.ts). */
export function shownKey(name: string | undefined): ShownKey {
  if (name === undefined || name === serialKey) return {};
  const bytes = Buffer.from(name, 'latin1');
  try {
    return { key: decoder.decode(bytes) };
  } catch {
    return { keyHex: bytes.toString('hex') };
  }
}
