import type { GroupDetails, GroupSummary } from '../broker/admin/group-view.ts';
import { settingsTable } from '../config/settings.ts';
import { BrokerError } from '../core/errors.ts';
import { formatHostPort, isWildcard, parseHostPort } from '../net/listeners.ts';
import { groupLines, groupsLines } from './groups-text.ts';

export interface GroupsOptions {
  /** All groups where it is not given. */
  readonly groupId: string | undefined;
  /** HOST:PORT of the broker's admin endpoint; else from the environment, else the usual one. */
  readonly admin: string | undefined;
  readonly json: boolean;
  /** All that the journal knows of the group, as JSON. */
  readonly export: boolean;
}

/** `keylane groups`: what a running broker says of its groups. */
export async function groups(options: GroupsOptions, print: (text: string) => void): Promise<void> {
  const { groupId } = options;
  const origin = originOf(options.admin);
  const path = groupId === undefined ? '/groups' : `/groups/${encodeURIComponent(groupId)}`;
  if (options.export) {
    if (groupId === undefined) throw usage('--export needs the name of a group');
    const response = await ask(origin, `${path}/export`);
    const decoder = new TextDecoder();
    for await (const chunk of response.body!) print(decoder.decode(chunk, { stream: true }));
    return;
  }
  const response = await ask(origin, path);
  if (options.json) {
    print(`${JSON.stringify(await response.json(), null, 2)}\n`);
    return;
  }
  const lines =
    groupId === undefined
      ? groupsLines(((await response.json()) as { groups: GroupSummary[] }).groups)
      : groupLines((await response.json()) as GroupDetails);
  print(`${lines.join('\n')}\n`);
}

function originOf(admin: string | undefined): string {
  const text =
    admin ?? process.env['KEYLANE_ADMIN_LISTEN'] ?? settingsTable['admin.listen'].default;
  if (text === '') throw usage('the broker has no admin endpoint: admin.listen is empty');
  try {
    const { host, port } = parseHostPort(text);
    // A broker that listens on all addresses is reached at this machine's own.
    return `http://${formatHostPort({ host: isWildcard(host) ? '127.0.0.1' : host, port })}`;
  } catch (error) {
    throw usage(`--admin: ${(error as Error).message}`);
  }
}

async function ask(origin: string, path: string): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`${origin}${path}`);
  } catch (error) {
    const { cause } = error as { cause?: { code?: string; message?: string } };
    const reason = cause?.code ?? cause?.message ?? (error as Error).message;
    const hint = 'is it running, and is this its admin.listen?';
    throw failure(`no broker answers at ${origin}: ${reason}; ${hint}`, error);
  }
  if (response.ok) return response;
  const text = await response.text();
  throw failure(errorOf(text) ?? `${origin}${path} answered ${response.status}`);
}

function errorOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: string }).error;
  } catch {
    return undefined;
  }
}

function usage(message: string): BrokerError {
  return new BrokerError('CONFIG_INVALID', message);
}

function failure(message: string, cause?: unknown): BrokerError {
  return new BrokerError('ADMIN_FAILED', message, {}, cause);
}
