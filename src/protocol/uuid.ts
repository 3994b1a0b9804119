/**
 * UUIDs in memory are 32 lower-case hex digits: cheap to make from 16 bytes, and usable as the key
 * of a Map. People see them as Kafka prints them: base64url without padding.
 */

/** Stands for "no topic id" (Uuid.ZERO_UUID). */
export const ZERO_UUID = '0'.repeat(32);

const hexUuid = /^[0-9a-f]{32}$/;
const base64Uuid = /^[0-9A-Za-z_-]{22}$/;

/** Kafka's text of a UUID, 22 characters. */
export function formatUuid(uuid: string): string {
  return Buffer.from(uuid, 'hex').toString('base64url');
}

/** The UUID that Kafka's text stands for, or undefined if it stands for none. */
export function parseUuid(text: string): string | undefined {
  if (!base64Uuid.test(text)) return undefined;
  const uuid = Buffer.from(text, 'base64url').toString('hex');
  // The last digit holds two spare bits; another text for the same UUID is not a UUID's text.
  return formatUuid(uuid) === text ? uuid : undefined;
}

export function isUuid(text: string): boolean {
  return hexUuid.test(text);
}
