/**
 * Broken invariants. A failed assertion means that the process can no longer trust its own state:
 * it is never caught, the process ends, and the next start recovers from the journal.
 */

export class AssertionFailed extends Error {
  override name = 'AssertionFailed';
}

/** Throws `AssertionFailed` unless `condition` holds. Never use it to judge input from outside. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionFailed(message);
}

/** Closes a switch over a discriminated union: the compiler proves that no case is missing. */
export function unreachable(value: never): never {
  throw new AssertionFailed(`unreachable: ${JSON.stringify(value)}`);
}
