/** How the handlers of a run went on, from the events that the consumers write. */

/** Records that a member handled in a stretch of time; single ones where they are work. */
export interface Stretch {
  readonly startMs: number;
  readonly endMs: number;
  readonly member: number;
  readonly count: number;
}

export interface Progress {
  /** Records handled in each whole second after the start of the clock. */
  readonly perSecond: readonly number[];
  /** How long a handler took, on average; of records that are no work there is nothing to say. */
  readonly handlerMs: number;
  /** From the first record of the first member to the first record of the last one. */
  readonly joinedLateMs: number;
}

/** Lines are `SEQUENCE START_US END_US MEMBER PARTITION OFFSET` or `- START_US END_US MEMBER COUNT`. */
export function readStretches(text: string): Stretch[] {
  // The last line may not be written whole yet.
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  lines.pop();
  return lines.map((line) => {
    const [sequence, startUs, endUs, member, ...rest] = line.split(' ');
    const count = sequence === '-' ? Number(rest[0]) : 1;
    const [startMs, endMs] = [Number(startUs) / 1000, Number(endUs) / 1000];
    return { startMs, endMs, member: Number(member), count };
  });
}

/**
 * The clock starts with the first record of the last member that gets any, so that joining is not
 * in it. It ends after so long, or with the last record, where the backlog was done before: only
 * whole seconds count.
 */
export function progressOf(stretches: readonly Stretch[], lengthMs: number): Progress {
  const firstMs = new Map<number, number>();
  let lastMs = 0;
  let handlersMs = 0;
  let handlers = 0;
  for (const { startMs, endMs, member, count } of stretches) {
    firstMs.set(member, Math.min(startMs, firstMs.get(member) ?? startMs));
    lastMs = Math.max(lastMs, endMs);
    handlersMs += endMs - startMs;
    handlers += count;
  }
  const clockMs = Math.max(...firstMs.values());
  const seconds = Math.max(0, Math.floor(Math.min(lengthMs, lastMs - clockMs) / 1000));
  const perSecond = new Array<number>(seconds).fill(0);
  for (const stretch of stretches) spread(stretch, clockMs, perSecond);
  return {
    perSecond: perSecond.map((count) => Math.round(count)),
    handlerMs: handlersMs / handlers,
    joinedLateMs: clockMs - Math.min(...firstMs.values()),
  };
}

/** A record that is work counts when it is done; the others evenly over their stretch. */
function spread({ startMs, endMs, count }: Stretch, clockMs: number, perSecond: number[]): void {
  const add = (second: number, records: number): void => {
    if (second >= 0 && second < perSecond.length) perSecond[second]! += records;
  };
  if (count === 1 || endMs <= startMs) {
    add(Math.floor((endMs - clockMs) / 1000), count);
    return;
  }
  const [from, to] = [(startMs - clockMs) / 1000, (endMs - clockMs) / 1000];
  for (let second = Math.floor(from); second < to; second++) {
    const share = (Math.min(to, second + 1) - Math.max(from, second)) / (to - from);
    add(second, count * share);
  }
}

/** Records a second from then on; of a backlog that was done before, in its last whole second. */
export function rateFrom(perSecond: readonly number[], fromMs: number): number {
  const from = Math.min(Math.ceil(fromMs / 1000), perSecond.length - 1);
  const settled = perSecond.slice(from);
  if (settled.length === 0) return Number.NaN;
  return settled.reduce((sum, count) => sum + count, 0) / settled.length;
}

/** The first second whose rate is at least so much; undefined if there is none. */
export function secondReaching(perSecond: readonly number[], rate: number): number | undefined {
  const second = perSecond.findIndex((count) => count >= rate);
  return second === -1 ? undefined : second;
}
