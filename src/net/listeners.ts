/** Addresses to listen on, and addresses to tell clients: pure functions of text. */

export interface HostPort {
  /** An address or name without brackets; '' means all addresses. */
  readonly host: string;
  readonly port: number;
}

export interface ListenerSettings {
  readonly listen: HostPort;
  /** What clients are told instead of that. Host '' and port 0 leave their part as it is. */
  readonly advertise?: HostPort | undefined;
}

/** Parses HOST:PORT, [IPV6]:PORT or :PORT. Throws a RangeError that says what is wrong. */
export function parseHostPort(text: string): HostPort {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  if (match === null) throw new RangeError(`"${text}" is not HOST:PORT or [IPV6]:PORT`);
  const port = Number(match[3]);
  if (port > 65535) throw new RangeError(`"${text}" has a port above 65535`);
  const host = match[1] ?? match[2] ?? '';
  if (match[1] !== undefined && !host.includes(':')) {
    throw new RangeError(`"${text}" has no IPv6 address in its brackets`);
  }
  if (/\s/.test(host)) throw new RangeError(`"${text}" has a space in its host`);
  return { host, port };
}

export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Whether listening on `host` means listening on every address of the machine. */
export function isWildcard(host: string): boolean {
  return host === '' || host === '0.0.0.0' || /^[0:]*:[0:]*$/.test(host);
}

/** An IPv4 address that came over an IPv6 socket (::ffff:10.0.0.1) as plain IPv4. */
export function plainAddress(address: string): string {
  const match = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return match?.[1] ?? address;
}

/**
 * The address under which a client is to reach this listener. A setting wins; else the host
 * listened on; and when that is a wildcard, the address at which this very client came in: it is
 * known to be reachable for it, without any setting, on machines with several networks too.
 */
export function advertisedFor(
  connectionLocalAddress: string,
  connectionLocalPort: number,
  settings: ListenerSettings,
): HostPort {
  const { listen, advertise } = settings;
  const port = advertise?.port || connectionLocalPort;
  if (advertise !== undefined && !isWildcard(advertise.host)) return { host: advertise.host, port };
  if (!isWildcard(listen.host)) return { host: listen.host, port };
  return { host: plainAddress(connectionLocalAddress), port };
}
