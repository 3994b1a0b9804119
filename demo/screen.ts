import type { Figures } from './figures.ts';
import { coloured, legend, linesOfPanel, type Paint, panel, plain } from './panel.ts';
import { aboutSeconds, type Plan, type RoundName } from './plan.ts';
import { conclusion, count, seconds } from './words.ts';

/** Where the demo is shown: drawn anew in place on a terminal, or a line now and then elsewhere. */
export interface Screen {
  /** Something has changed in a round. */
  show(name: RoundName, figures: Figures | undefined, state: string): void;
  /** The round is over. */
  finish(name: RoundName, figures: Figures): void;
  /** Leaves the terminal as it was. */
  close(): void;
}

const hideCursor = '\u001b[?25l';
const showCursor = '\u001b[?25h';
const clearLine = '\u001b[K';
const clearBelow = '\u001b[J';
const columnsMin = 80;

export function openScreen(stream: NodeJS.WriteStream, plan: Plan): Screen {
  const { env } = process;
  const lines = 2 * (linesOfPanel + 1) + 5;
  const isLargeEnough = (stream.columns ?? 0) >= columnsMin && (stream.rows ?? 0) > lines;
  if (!stream.isTTY || env['TERM'] === 'dumb' || !isLargeEnough) {
    return new LineScreen(stream, plan);
  }
  // https://no-color.org: any value but the empty one.
  return new TerminalScreen(stream, plan, (env['NO_COLOR'] ?? '') === '' ? coloured : plain);
}

export function headline({ slowMs, quickPerSecond, consumers }: Plan): string {
  const slow = `one record takes ${slowMs / 1000} s`;
  return `${consumers} kafkajs consumers, ${quickPerSecond} quick records a second, and ${slow}`;
}

class TerminalScreen implements Screen {
  readonly #stream: NodeJS.WriteStream;
  readonly #plan: Plan;
  readonly #paint: Paint;
  readonly #panels: Record<RoundName, string[]>;
  readonly #ends: string[] = [];
  #linesDrawn = 0;

  constructor(stream: NodeJS.WriteStream, plan: Plan, paint: Paint) {
    this.#stream = stream;
    this.#plan = plan;
    this.#paint = paint;
    this.#panels = {
      log: panel('log', undefined, '', plan, paint),
      keyed: panel('keyed', undefined, 'next', plan, paint),
    };
    stream.write(hideCursor);
  }

  show(name: RoundName, figures: Figures | undefined, state: string): void {
    this.#panels[name] = panel(name, figures, state, this.#plan, this.#paint);
    this.#draw();
  }

  finish(name: RoundName, figures: Figures): void {
    this.#ends.push(this.#paint(` ${conclusion(name, figures.summary())}`, 'bold'));
    this.show(name, figures, 'done');
  }

  close(): void {
    this.#stream.write(showCursor);
  }

  #draw(): void {
    const lines = [
      ` ${headline(this.#plan)}`,
      legend(this.#plan, this.#paint),
      ...['', ...this.#panels.log],
      ...['', ...this.#panels.keyed],
      ...['', ...this.#ends],
    ];
    const up = this.#linesDrawn === 0 ? '' : `\u001b[${this.#linesDrawn}A`;
    const text = lines.map((line) => `${line}${clearLine}\n`).join('');
    this.#stream.write(`${up}\r${text}${clearBelow}`);
    this.#linesDrawn = lines.length;
  }
}

/** A few plain lines, for files, pipes, and terminals too small for the drawing. */
class LineScreen implements Screen {
  readonly #stream: NodeJS.WriteStream;
  readonly #everyMs: number;
  readonly #ends: string[] = [];
  #nextMs = 0;

  constructor(stream: NodeJS.WriteStream, plan: Plan) {
    this.#stream = stream;
    this.#everyMs = plan.slowMs / 4;
    this.#print(`${headline(plan)}; about ${aboutSeconds(plan)} s in all`);
  }

  show(name: RoundName, figures: Figures | undefined, state: string): void {
    if (figures === undefined) {
      this.#nextMs = this.#everyMs;
      this.#print(`${name}: ${state}`);
      return;
    }
    if (figures.nowMs < this.#nextMs) return;
    this.#nextMs += this.#everyMs;
    const slow =
      figures.slow?.isDone === false ? `slow record at ${seconds(figures.slow.ms)}, ` : '';
    const waiting = `${count(figures.waiting)} waiting, the oldest for ${seconds(figures.waitMsNow)}`;
    this.#print(`${name} ${seconds(figures.nowMs)}: ${slow}${waiting}`);
  }

  finish(name: RoundName, figures: Figures): void {
    const summary = figures.summary();
    const { quickRecords, waitMsP50, waitMsP99, waitMsMax } = summary;
    const parts = [
      `${count(quickRecords)} quick records`,
      `half of them begun within ${seconds(waitMsP50)}`,
      `99 in 100 within ${seconds(waitMsP99)}`,
      `worst ${seconds(waitMsMax)}`,
    ];
    this.#print(`${name}: ${parts.join(', ')}`);
    this.#ends.push(conclusion(name, summary));
    if (name === 'keyed') for (const line of ['', ...this.#ends]) this.#print(line);
  }

  close(): void {}

  #print(line: string): void {
    this.#stream.write(`${line}\n`);
  }
}
