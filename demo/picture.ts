import type { Figures, Slice } from './figures.ts';
import { columnMsOf, type Plan, type RoundName, titles } from './plan.ts';
import { headline } from './screen.ts';
import { conclusion, count, seconds } from './words.ts';

/**
 * The picture of a run for the README, as SVG: per round a strip for what each consumer did, and
 * the wait of the oldest quick record below, both rounds on the same axes.
 */

const width = 860;
const left = 120;
const right = 112;
const plotWidth = width - left - right;
const stripHeight = 16;
const stripPitch = 21;
const chartHeight = 60;

const colours = {
  ...{ back: '#10151c', text: '#d7dde5', dim: '#7d8896', line: '#2a3340' },
  ...{ quick: '#3fb27f', slow: '#e5534b', wait: '#e0a63a' },
};

type Rounds = Readonly<Record<RoundName, Figures>>;

export function picture(rounds: Rounds, plan: Plan): string {
  const panelHeight = 30 + plan.consumers * stripPitch + chartHeight + 38;
  const height = 74 + 2 * panelHeight + 62;
  const timeMs = Math.max(rounds.log.nowMs, rounds.keyed.nowMs);
  const ends = (['log', 'keyed'] as const).map((name) => conclusion(name, rounds[name].summary()));
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13">`,
    `<title>One slow record in log delivery and in keyed delivery</title>`,
    `<desc>${ends.join('. ')}.</desc>`,
    `<rect width="${width}" height="${height}" rx="8" fill="${colours.back}"/>`,
    label(20, 30, headline(plan), { weight: 'bold' }),
    ...key(20, 52, plan),
    ...panelParts('log', rounds.log, 74, timeMs, plan),
    ...panelParts('keyed', rounds.keyed, 74 + panelHeight, timeMs, plan),
    ...ends.map((end, index) => label(20, height - 40 + 22 * index, end, { weight: 'bold' })),
    '</svg>',
  ];
  return `${parts.join('\n')}\n`;
}

interface TextStyle {
  readonly fill?: string;
  readonly weight?: string;
  readonly anchor?: string;
}

function label(x: number, y: number, text: string, style: TextStyle = {}): string {
  const { fill = colours.text, weight = 'normal', anchor = 'start' } = style;
  return `<text x="${round(x)}" y="${round(y)}" fill="${fill}" font-weight="${weight}" text-anchor="${anchor}" xml:space="preserve">${text}</text>`;
}

function box(x: number, y: number, boxWidth: number, height: number, fill: string): string {
  // From rounded edges, so that neighbours touch.
  const roundedWidth = round(round(x + boxWidth) - round(x));
  return `<rect x="${round(x)}" y="${round(y)}" width="${roundedWidth}" height="${round(height)}" fill="${fill}" shape-rendering="crispEdges"/>`;
}

/** What the colours mean. */
function key(x: number, y: number, plan: Plan): string[] {
  const entries = [
    [colours.quick, `busy with quick records, ${plan.quickMs} ms each`],
    [colours.slow, 'busy with the slow one'],
    [colours.wait, 'wait of the oldest quick record'],
  ] as const;
  const parts: string[] = [];
  for (const [fill, text] of entries) {
    parts.push(box(x, y - 10, 10, 10, fill), label(x + 16, y, text, { fill: colours.dim }));
    x += 48 + text.length * 7.9;
  }
  return parts;
}

function panelParts(
  name: RoundName,
  figures: Figures,
  top: number,
  timeMs: number,
  plan: Plan,
): string[] {
  const [title, subtitle] = titles[name];
  const parts = [
    label(20, top + 20, title, { weight: 'bold' }),
    label(32 + title.length * 8, top + 20, subtitle, { fill: colours.dim }),
  ];
  let y = top + 32;
  for (const [index, { slices, done }] of figures.consumers.entries()) {
    parts.push(label(20, y + 13, `consumer ${index + 1}`, { fill: colours.dim }));
    parts.push(box(left, y, plotWidth, stripHeight, colours.line));
    parts.push(...strip(slices, y, timeMs, columnMsOf(plan)));
    const text = `${count(done)} done`;
    parts.push(label(width - 20, y + 13, text, { fill: colours.dim, anchor: 'end' }));
    y += stripPitch;
  }
  return [...parts, ...waitChart(figures, y + 6, timeMs, plan)];
}

/** Green from below as high as the share of its time that the consumer was busy; red where slow. */
function strip(slices: readonly Slice[], y: number, timeMs: number, columnMs: number): string[] {
  const parts: string[] = [];
  const xOf = (ms: number): number => left + (Math.min(ms, timeMs) / timeMs) * plotWidth;
  for (const [index, { quickMs, slowMs }] of slices.entries()) {
    const x = xOf(index * columnMs);
    const columnWidth = xOf((index + 1) * columnMs) - x;
    const height = Math.min(1, quickMs / columnMs) * stripHeight;
    if (height > 0.2)
      parts.push(box(x, y + stripHeight - height, columnWidth, height, colours.quick));
    const slowWidth = Math.min(1, slowMs / columnMs) * columnWidth;
    if (slowWidth === 0) continue;
    // In its first slice the slow record is the end, in its last one the beginning.
    const isFirst = (slices[index - 1]?.slowMs ?? 0) === 0;
    parts.push(
      box(isFirst ? x + columnWidth - slowWidth : x, y, slowWidth, stripHeight, colours.slow),
    );
  }
  return parts;
}

function waitChart(figures: Figures, top: number, timeMs: number, plan: Plan): string[] {
  const bottom = top + chartHeight;
  const points = figures.samples.map(({ atMs, waitMs }) => {
    const x = left + (Math.min(atMs, timeMs) / timeMs) * plotWidth;
    const y = bottom - Math.min(1, waitMs / plan.slowMs) * chartHeight;
    return `${round(x)},${round(y)}`;
  });
  const last = points.at(-1)?.split(',')[0] ?? left;
  const { waitMsMax } = figures.summary();
  return [
    label(20, top + 12, 'wait', { fill: colours.dim }),
    label(left - 8, top + 12, `${plan.slowMs / 1000} s`, { fill: colours.dim, anchor: 'end' }),
    label(left - 8, bottom, '0 s', { fill: colours.dim, anchor: 'end' }),
    box(left, top, plotWidth, 1, colours.line),
    box(left, bottom, plotWidth, 1, colours.line),
    `<polygon points="${left},${bottom} ${points.join(' ')} ${last},${bottom}" fill="${colours.wait}" fill-opacity="0.35" stroke="${colours.wait}" stroke-width="1.5"/>`,
    label(width - 20, top + 12, 'worst', { fill: colours.dim, anchor: 'end' }),
    label(width - 20, top + 30, seconds(waitMsMax), { fill: colours.wait, anchor: 'end' }),
  ];
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
