import { type IncomingMessage, request } from 'node:http';
import { settingsTable } from '../config/settings.ts';
import { BrokerError } from '../core/errors.ts';
import { formatHostPort, isWildcard, parseHostPort } from '../net/listeners.ts';

/** Where the admin endpoint is: as given, else from the environment, else the usual one. */
export function originOf(admin: string | undefined): string {
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

/** With a plain client: `fetch` refuses ports that browsers do. What changes needs the secret. */
export async function ask(
  origin: string,
  path: string,
  method: 'GET' | 'PUT' | 'DELETE' = 'GET',
  secret?: string,
): Promise<IncomingMessage> {
  let response: IncomingMessage;
  const headers = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
  try {
    response = await new Promise((resolve, reject) => {
      request(`${origin}${path}`, { method, headers }, resolve).on('error', reject).end();
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

export async function textOf(response: IncomingMessage): Promise<string> {
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

export function usage(message: string): BrokerError {
  return new BrokerError('CONFIG_INVALID', message);
}

function failure(message: string, cause?: unknown): BrokerError {
  return new BrokerError('ADMIN_FAILED', message, {}, cause);
}
