/** How the benchmarks read values of their command lines. */
import { InvalidArgumentError } from 'commander';

/** Some of the known names, with commas between. */
export function namesOf<T extends string>(known: readonly T[]): (text: string) => T[] {
  return (text) =>
    text.split(',').map((name) => {
      const found = known.find((one) => one === name);
      if (found === undefined) throw new InvalidArgumentError(`one of ${known.join(', ')}`);
      return found;
    });
}

export function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('not a number above 0');
  return value;
}
