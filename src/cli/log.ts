import { isatty } from 'node:tty';
import { pino, stdSerializers, stdTimeFunctions } from 'pino';
import type { Logger } from '../core/logger.ts';

/** The log of the process: JSON lines on stdout, short lines for people on a terminal. */
export interface ProcessLog extends Logger {
  /** Whether a person is looking. */
  readonly isTerminal: boolean;
  /** The last line of a process that ends now; written before this returns. */
  fatal(fields: object, message: string): void;
}

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof levels)[number];

/** What a reader of stdout that has stopped reading can make us hold; then lines are dropped. */
const waitingBytesMax = 16 * 1024 * 1024;

export function createLog(level: LogLevel): ProcessLog {
  // Asked of the descriptor: to touch process.stdout would make a pipe non-blocking.
  return isatty(1) ? terminalLog(level) : jsonLog(level);
}

function jsonLog(level: LogLevel): ProcessLog {
  // Asynchronous, so that a slow reader of the log never holds up the broker.
  const destination = pino.destination({ fd: 1, sync: false, maxLength: waitingBytesMax });
  // Lost log lines (a reader that went away, a full disk) must not end the broker.
  destination.on('error', () => undefined);
  const logger = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: stdSerializers.err, error: stdSerializers.err },
    },
    destination,
  );
  return {
    isTerminal: false,
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    fatal(fields, message) {
      logger.fatal(fields, message);
      destination.flushSync();
    },
  };
}

function terminalLog(lowest: LogLevel): ProcessLog {
  // The terminal may be closed while the broker goes on.
  process.stdout.on('error', () => undefined);
  const print = (level: LogLevel, fields: object, message: string): void => {
    if (levels.indexOf(level) < levels.indexOf(lowest)) return;
    process.stdout.write(`${terminalLine(level, fields, message, new Date())}\n`);
  };
  return {
    isTerminal: true,
    debug: (fields, message) => print('debug', fields, message),
    info: (fields, message) => print('info', fields, message),
    warn: (fields, message) => print('warn', fields, message),
    error: (fields, message) => print('error', fields, message),
    fatal: (fields, message) => print('fatal', fields, message),
  };
}

/** `12:03:04 warn  message  name=value`, and the stacks of errors below it. */
export function terminalLine(level: LogLevel, fields: object, message: string, at: Date): string {
  const time = at.toTimeString().slice(0, 8);
  const words: string[] = [];
  const stacks: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    if (value instanceof Error) stacks.push(`\n${value.stack ?? value.message}`);
    else words.push(` ${name}=${shown(value)}`);
  }
  return `${time} ${level.padEnd(5)} ${message}${words.join('')}${stacks.join('')}`;
}

function shown(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
