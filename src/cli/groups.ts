import { get, type IncomingMessage } from 'node:http';
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
    for await (const piece of response) print(piece as string);
    return;
  }
  const answer = JSON.parse(await textOf(await ask(origin, path))) as unknown;
  if (options.json) {
    print(`${JSON.stringify(answer, null, 2)}\n`);
    return;
  }
  const lines =
    groupId === undefined
      ? groupsLines((answer as { groups: GroupSummary[] }).groups)
      : groupLines(answer as GroupDetails);
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

/** With a plain client: `fetch` refuses ports that browsers do. */
async function ask(origin: string, path: string): Promise<IncomingMessage> {
  let response: IncomingMessage;
  try {
    response = await new Promise((resolve, reject) => {
      get(`${origin}${path}`, resolve).on('error', reject);
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const hint = 'is it running, and is this its admin.listen?';
    throw failure(`no broker answers at ${origin}: ${code ?? message}; ${hint}`, error);
  }
  response.setEncoding('utf8');
  if (response.statusCode === 200) return response;
  const reason = errorOf(await textOf(response));
  throw failure(reason ?? `${origin}${path} answered with status ${response.statusCode}`);
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of response) text += piece as string;
  return text;
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
