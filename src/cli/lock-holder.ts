import { readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { join, relative } from 'node:path';

/** Who holds a data folder, so that others can find out whether that process still runs. */
export interface LockHolder {
  readonly pid: number;
  /** When the process started, in the kernel's own units; '' where the system does not tell. */
  readonly startTime: string;
  /** The boot of the machine and the process namespace in which the pid has its meaning. */
  readonly bootId: string;
  readonly pidNamespace: string;
  /** Names the socket in the folder on which the holder listens; '' if it has none. */
  readonly socketId: string;
}

/**
 *   holder => pid '.' startTime '.' bootId '.' pidNamespace '.' socketId
 *
 * Below 60 bytes, which is what ext4 keeps of a symbolic link without a block of its own.
 */
const holderPattern = /^([1-9]\d{0,9})\.(\d*)\.([0-9a-f]*)\.(\d*)\.([0-9a-f]*)$/;

export function formatHolder(holder: LockHolder): string {
  const { pid, startTime, bootId, pidNamespace, socketId } = holder;
  return [pid, startTime, bootId, pidNamespace, socketId].join('.');
}

export function parseHolder(text: string): LockHolder | undefined {
  const match = holderPattern.exec(text);
  if (match === null) return undefined;
  const [, pid, startTime, bootId, pidNamespace, socketId] = match;
  return {
    pid: Number(pid),
    startTime: startTime!,
    bootId: bootId!,
    pidNamespace: pidNamespace!,
    socketId: socketId!,
  };
}

/** The longest path of a Unix socket that every system takes. */
const socketPathBytesMax = 100;

export function thisProcess(socketId: string): LockHolder {
  const { startTime } = processState(process.pid) ?? { startTime: '' };
  return { pid: process.pid, startTime, bootId: bootId(), pidNamespace: pidNamespace(), socketId };
}

/**
 * Whether the holder still runs. Once the answer is no, it stays no. The process table says it
 * exactly, but only within one boot and one process namespace: containers that share a folder do
 * not see each other's processes. There the holder's socket says it: the kernel refuses
 * connections as soon as the process has ended.
 */
export async function isRunning(holder: LockHolder, folder: string): Promise<boolean> {
  const isInOurTable = holder.bootId === bootId() && holder.pidNamespace === pidNamespace();
  if (isInOurTable && holder.startTime !== '') {
    const found = processState(holder.pid);
    return found !== undefined && found.startTime === holder.startTime && !found.hasEnded;
  }
  const path = holder.socketId === '' ? undefined : socketPath(folder, holder.socketId);
  if (path !== undefined) return hasListener(path);
  return isInOurTable && existsProcess(holder.pid);
}

/** The shortest path to a socket in the folder, or undefined if no system call would take it. */
export function socketPath(folder: string, socketId: string): string | undefined {
  const absolute = join(folder, socketName(socketId));
  const paths = [absolute, relative(process.cwd(), absolute)];
  return paths.find((path) => path !== '' && Buffer.byteLength(path) <= socketPathBytesMax);
}

export function socketName(socketId: string): string {
  return `lock-${socketId}.sock`;
}

interface ProcessState {
  readonly startTime: string;
  readonly hasEnded: boolean;
}

/** Reads /proc/PID/stat (proc(5)); undefined where there is no such process or no such file. */
function processState(pid: number): ProcessState | undefined {
  const stat = readOr(`/proc/${pid}/stat`, '');
  // The second field is the name in parentheses, which may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  const startTime = fields[19];
  if (stat === '' || state === undefined || startTime === undefined) return undefined;
  // Zombie or dead: it has ended, and only its parent has not looked yet.
  return { startTime, hasEnded: state === 'Z' || state === 'X' || state === 'x' };
}

/** The first 32 bits of it are enough to tell one boot from another. */
function bootId(): string {
  return readOr('/proc/sys/kernel/random/boot_id', '').slice(0, 8);
}

/** The number in `pid:[4026531836]`. */
function pidNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
  } catch {
    return '';
  }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return otherwise;
  }
}

function hasListener(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const finish = (isHeld: boolean): void => {
      socket.destroy();
      resolve(isHeld);
    };
    socket.once('connect', () => finish(true));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      // Other errors, such as a full backlog or missing permission, do not prove an absence.
      finish(code !== 'ECONNREFUSED' && code !== 'ENOENT' && code !== 'ENOTSOCK');
    });
  });
}

function existsProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists and belongs to someone else.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
