/**
 * The items with different keys, the first of each. Where an answer says much about each thing
 * that is named, a small request that names one thing a million times must not cost a million
 * descriptions.
 */
export function distinctBy<T>(items: readonly T[], keyOf: (item: T) => string | number): T[] {
  const byKey = new Map<string | number, T>();
  for (const item of items) {
    const key = keyOf(item);
    if (!byKey.has(key)) byKey.set(key, item);
  }
  return byKey.size === items.length ? [...items] : [...byKey.values()];
}
