import type { Case, Goal, Sample } from './case.ts';

/** The figures of one case: for each variant, the samples of its runs. */
export type Runs = ReadonlyMap<string, readonly (readonly Sample[])[]>;

export interface Row {
  readonly what: string;
  readonly unit: string;
  /** For each variant: the values of the runs and their median. */
  readonly values: Readonly<Record<string, { readonly median: number; readonly runs: number[] }>>;
  /** First variant over second. */
  readonly ratio: number | undefined;
  readonly goal: string | undefined;
  readonly reached: boolean | undefined;
}

export function rowsOf(bench: Case, runs: Runs): Row[] {
  const names = bench.variants.map((variant) => variant.name);
  const first = runs.get(names[0]!)?.[0] ?? [];
  return first.map(({ what, unit, better }) => {
    const values: Record<string, { median: number; runs: number[] }> = {};
    for (const name of names) {
      const found = (runs.get(name) ?? []).flatMap((samples) =>
        samples.filter((sample) => sample.what === what && sample.unit === unit),
      );
      const numbers = found.map((sample) => sample.value);
      values[name] = { median: median(numbers), runs: numbers };
    }
    const second = names[1];
    const ratio =
      second === undefined ? undefined : values[names[0]!]!.median / values[second]!.median;
    const goal = bench.goals.find((one) => one.unit === unit && one.what.test(what));
    const judged = goal?.of === 'ratio' ? ratio : values[names[0]!]!.median;
    return {
      what,
      unit,
      values,
      ratio,
      goal: goal && goalText(goal, better),
      reached:
        goal &&
        judged !== undefined &&
        (better === 'more' ? judged >= goal.limit : judged <= goal.limit),
    };
  });
}

function goalText(goal: Goal, better: Sample['better']): string {
  return `${better === 'more' ? '≥' : '≤'} ${goal.limit}${goal.of === 'ratio' ? '×' : ''}`;
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The table of one case, as Markdown. */
export function table(bench: Case, rows: readonly Row[]): string {
  const names = bench.variants.map((variant) => variant.name);
  const head = ['', 'unit', ...names, 'ratio', 'goal', ''];
  const lines = rows.map((row) => [
    row.what,
    row.unit,
    ...names.map((name) => cell(row.values[name]!)),
    row.ratio === undefined ? '' : row.ratio.toFixed(2),
    row.goal ?? '',
    row.reached === undefined ? '' : row.reached ? 'yes' : 'NO',
  ]);
  return `### ${bench.name}: ${bench.about}\n\n${markdownTable(head, lines)}`;
}

export function markdownTable(head: readonly string[], lines: readonly string[][]): string {
  const widths = head.map((_, i) => Math.max(...[head, ...lines].map((line) => line[i]!.length)));
  const text = (line: readonly string[]): string =>
    `| ${line.map((one, i) => one.padEnd(widths[i]!)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [text(head), rule, ...lines.map(text)].join('\n');
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** The median, and how far the runs lie apart. */
function cell({ median: middle, runs }: { median: number; runs: readonly number[] }): string {
  if (runs.length < 2) return figure(middle);
  return `${figure(middle)} (${figure(Math.min(...runs))}–${figure(Math.max(...runs))})`;
}

function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return value >= 100 ? Math.round(value).toString() : value.toPrecision(3);
}
