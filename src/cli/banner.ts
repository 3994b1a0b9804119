import { formatHostPort, type HostPort, isWildcard, parseHostPort } from '../net/listeners.ts';

export interface BannerFacts {
  readonly version: string;
  /** What is listened on, with the real port. */
  readonly address: HostPort;
  /** Of the endpoint for operators, if there is one. */
  readonly adminAddress: HostPort | undefined;
  /** The setting; may be empty. */
  readonly advertise: string;
  readonly data: string;
  readonly nodeId: number;
  readonly pid: number;
  readonly startMs: number;
}

/** What a person at a terminal is told once the broker is ready. */
export function banner(facts: BannerFacts): string {
  const { version, address, adminAddress, data, nodeId, pid, startMs } = facts;
  const admin = adminAddress === undefined ? 'none' : `http://${formatHostPort(adminAddress)}`;
  const lines = [
    `Keylane ${version}, ready after ${startMs} ms`,
    '',
    `  listens on   ${formatHostPort(address)}`,
    `  operators    ${admin}`,
    `  data folder  ${data}`,
    `  process      ${pid} (node ${nodeId})`,
    '',
    'Point any Kafka client at it:',
    '',
    `  bootstrap.servers=${bootstrap(facts)}`,
    '',
    'Ctrl+C stops it.',
    '',
  ];
  return `${lines.join('\n')}\n`;
}

function bootstrap({ address, advertise }: BannerFacts): string {
  const told = advertise === '' ? address : parseHostPort(advertise);
  const host = isWildcard(told.host) ? 'localhost' : told.host;
  return formatHostPort({ host, port: told.port === 0 ? address.port : told.port });
}
