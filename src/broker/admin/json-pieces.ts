/** The JSON of long values, made in pieces. */

/** An object, up to where the items of its last field, a list, follow. */
export function opened(fields: object, listName: string): string {
  return `${JSON.stringify(fields).slice(0, -1)},"${listName}":[`;
}

/** The items of a list. */
export function* joined(values: Iterable<unknown>): Iterable<string> {
  let isFirst = true;
  for (const value of values) {
    yield `${isFirst ? '' : ','}${JSON.stringify(value)}`;
    isFirst = false;
  }
}
