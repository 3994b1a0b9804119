import type { Figures, Slice } from './figures.ts';
import { aboutSeconds, columnMsOf, columnsMax, type Plan, type RoundName, titles } from './plan.ts';
import { count, seconds } from './words.ts';

/**
 * A round as lines of text, 80 columns wide: a strip for what each consumer does, one below for how
 * long records wait, all on the same axis of time.
 */

export type Paint = (text: string, colour: 'red' | 'green' | 'yellow' | 'bold' | 'dim') => string;

const codes = { red: 31, green: 32, yellow: 33, bold: 1, dim: 2 };

export const coloured: Paint = (text, colour) => `\u001b[${codes[colour]}m${text}\u001b[0m`;
export const plain: Paint = (text) => text;

const levels = '▁▂▃▄▅▆▇█';
const labelColumns = 14;
/** Below this share of its time a consumer counts as idle. */
const busyShareMin = 0.03;

export const linesOfPanel = 8;

export function legend(plan: Plan, paint: Paint): string {
  const quick = `${paint('▂▅▇', 'green')} quick records, ${plan.quickMs} ms each`;
  const colours = ` ${quick}   ${paint('█', 'red')} the slow one   ${paint('·', 'dim')} idle`;
  return `${colours}      about ${aboutSeconds(plan)} s in all`;
}

/** The panel of a round that has not begun is empty, and says what is coming. */
export function panel(
  name: RoundName,
  figures: Figures | undefined,
  state: string,
  plan: Plan,
  paint: Paint,
): string[] {
  const [title, subtitle] = titles[name];
  const head = ` ${title}  ${subtitle}`;
  const lines = [
    ` ${paint(title, 'bold')}  ${subtitle}${state.padStart(79 - head.length)}`,
    slowLine(figures, plan, paint),
  ];
  for (let index = 0; index < plan.consumers; index++) {
    const lane = figures?.consumers[index];
    const strip = (lane?.slices ?? []).slice(0, columnsMax);
    const cells = strip.map((slice) => cell(slice, columnMsOf(plan), paint)).join('');
    const done = lane === undefined ? '' : `${count(lane.done)} done`;
    lines.push(row(`consumer ${index + 1}`, cells, strip.length, done));
  }
  return [...lines, ...waitLines(figures, plan, paint)];
}

function row(label: string, cells: string, columns: number, right: string): string {
  const gap = ' '.repeat(Math.max(0, columnsMax - columns));
  return `   ${label.padEnd(labelColumns)}${cells}${gap}${right.padStart(14)}`;
}

function cell({ quickMs, slowMs }: Slice, columnMs: number, paint: Paint): string {
  if (slowMs > columnMs / 2) return paint('█', 'red');
  const share = Math.min(1, quickMs / columnMs);
  if (share < busyShareMin) return paint('·', 'dim');
  // The full block is the slow record's, for those who see no colours.
  return paint(levels[Math.min(6, Math.floor(share * 7))]!, 'green');
}

function slowLine(figures: Figures | undefined, { slowMs }: Plan, paint: Paint): string {
  const slow = figures?.slow;
  const share = slow?.isDone === true ? 1 : Math.min(1, (slow?.ms ?? 0) / slowMs);
  const columns = 16;
  const full = Math.floor(share * columns);
  const bar = paint('█'.repeat(full), 'red') + paint('░'.repeat(columns - full), 'dim');
  let text = 'not there yet';
  if (figures === undefined) text = '';
  if (slow !== undefined) {
    const waiting = figures?.ownWaiting ?? 0;
    const later = waiting === 0 ? '' : `, ${waiting} later of its key wait`;
    const where = ` at consumer ${slow.consumer + 1}${later}`;
    text = slow.isDone ? `done${where}` : `${seconds(slow.ms)}${where}`;
  }
  return `   ${'slow record'.padEnd(labelColumns)}${bar} ${text}`;
}

function waitLines(figures: Figures | undefined, plan: Plan, paint: Paint): string[] {
  const columnMs = columnMsOf(plan);
  const peaks: number[] = [];
  for (const { atMs, waitMs } of figures?.samples ?? []) {
    const column = Math.floor(atMs / columnMs);
    if (column >= columnsMax) break;
    while (peaks.length <= column) peaks.push(0);
    peaks[column] = Math.max(peaks[column]!, waitMs);
  }
  const cells = peaks.map((waitMs) => {
    const level = Math.min(levels.length - 1, Math.floor((waitMs / plan.slowMs) * levels.length));
    return levels[level]!;
  });
  const now = figures === undefined ? '' : `now ${seconds(figures.waitMsNow)}`;
  const strip = row('oldest waits', paint(cells.join(''), 'yellow'), cells.length, now);
  if (figures === undefined) return [strip, ''];
  const { waitMsP50, waitMsMax, quickRecords } = figures.summary();
  const words = [
    `${count(figures.waiting)} of ${count(quickRecords)} waiting`,
    `half begun within ${seconds(waitMsP50)}`,
    `worst ${seconds(waitMsMax)}`,
  ];
  return [strip, `   ${'quick records'.padEnd(labelColumns)}${words.join(', ')}`];
}
