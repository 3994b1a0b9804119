import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts CPU time in these; sysconf(_SC_CLK_TCK) is 100 everywhere. */
const ticksPerSecond = 100;

export interface ProcessStats {
  /** User and system time of all threads since the start. */
  readonly cpuSeconds: number;
  readonly residentMb: number;
  /** The most that was resident at a time. */
  readonly residentPeakMb: number;
}

/** What a process and its children have used, from /proc. */
export function processStats(pid: number): ProcessStats {
  let cpuSeconds = 0;
  let residentMb = 0;
  let residentPeakMb = 0;
  for (const one of withDescendants(pid)) {
    // The command name may hold spaces and brackets; what follows the last bracket does not.
    const stat = readFileSync(`/proc/${one}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    cpuSeconds += (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
    const status = readFileSync(`/proc/${one}/status`, 'utf8');
    residentMb += megabytes(status, 'VmRSS');
    residentPeakMb += megabytes(status, 'VmHWM');
  }
  return { cpuSeconds, residentMb, residentPeakMb };
}

/** Processor time of everything on the machine, since it started. */
export function machineCpuSeconds(): number {
  const { user, nice, system, irq, softirq } = machineTicks();
  return (user + nice + system + irq + softirq) / ticksPerSecond;
}

/** What a virtual machine wanted to compute and its host gave to others, since it started. */
export function stolenCpuSeconds(): number {
  return machineTicks().steal / ticksPerSecond;
}

/** Of all processors together, in the order of proc(5). */
function machineTicks() {
  const [user, nice, system, idle, iowait, irq, softirq, steal] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]!
    .trim()
    .split(/\s+/)
    .slice(1, 9)
    .map(Number) as [number, number, number, number, number, number, number, number];
  return { user, nice, system, idle, iowait, irq, softirq, steal };
}

function megabytes(status: string, field: string): number {
  const kibibytes = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1];
  return (Number(kibibytes ?? 0) * 1024) / 1e6;
}

function withDescendants(pid: number): number[] {
  const found = [pid];
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const children = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim();
    if (children === '') continue;
    for (const child of children.split(' ')) found.push(...withDescendants(Number(child)));
  }
  return found;
}
