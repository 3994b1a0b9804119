/** A small HTTP server for operators. What changes something needs a secret; see `change`. */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { BrokerError } from '../core/errors.ts';
import type { HostPort } from './listeners.ts';

export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  /** Long ones in pieces, which are made as they are sent: in between, others get their turns. */
  readonly body: string | Iterable<string>;
}

/** A request that changes something. */
export interface HttpChange {
  readonly method: 'PUT' | 'DELETE';
  readonly path: string;
  /** What it says of itself: the `Authorization` header. */
  readonly authorization: string;
}

export interface HttpServerOptions {
  /** `path` is as it was sent, but without a query. */
  readonly answer: (path: string) => HttpAnswer | Promise<HttpAnswer>;
  /** Has to judge by itself whether whoever asks may. */
  readonly change?: (change: HttpChange) => Promise<HttpAnswer>;
  /** An answer could not be made. */
  readonly onError: (error: unknown) => void;
}

const reading = ['GET', 'HEAD'];
const changing = ['PUT', 'DELETE'];
/** Scrapers and people are few; more are closed at once. */
const connectionsMax = 64;
const requestMsMax = 10_000;
const keepAliveMs = 10_000;
/** Pieces are gathered up to this length, and for so long; then others get their turns. */
const chunkLength = 64 * 1024;
const chunkMsMax = 4;

export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #server: Server;
  #isLocal = false;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#server = createServer(
      { requestTimeout: requestMsMax, headersTimeout: requestMsMax, keepAliveTimeout: keepAliveMs },
      (request, response) => {
        this.#respond(request, response).catch((error: unknown) => {
          options.onError(error);
          response.destroy();
        });
      },
    );
    this.#server.maxConnections = connectionsMax;
  }

  /** Answers the address, with the real port. */
  listen({ host, port }: HostPort): Promise<HostPort> {
    this.#isLocal = /^(127\..*|::1|localhost)$/.test(host);
    return new Promise((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => {
        const reason = error.code ?? error.message;
        const message = `the admin endpoint cannot listen on ${host}:${port}: ${reason}`;
        reject(new BrokerError('LISTEN_FAILED', message, { host, port, reason }, error));
      });
      this.#server.listen({ port, ...(host !== '' && { host }) }, () => {
        // Such as no file descriptors left: that client is lost, the listener goes on.
        this.#server.on('error', () => undefined);
        resolve({ host, port: (this.#server.address() as AddressInfo).port });
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  get #methods(): readonly string[] {
    return this.#options.change === undefined ? reading : [...reading, ...changing];
  }

  #answer({ method, headers }: IncomingMessage, path: string): HttpAnswer | Promise<HttpAnswer> {
    const { change, answer } = this.#options;
    if (method !== 'PUT' && method !== 'DELETE') return answer(path);
    return change!({ method, path, authorization: headers.authorization ?? '' });
  }

  #refusal(request: IncomingMessage): HttpAnswer | undefined {
    if (!this.#methods.includes(request.method ?? '')) return refusal(405);
    // A page in this machine's browser whose name was made to lead here (DNS rebinding).
    if (this.#isLocal && !isMadeLocally(request)) return refusal(421);
    return undefined;
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?', 1)[0]!;
    const { status, contentType, body } = await (this.#refusal(request) ??
      this.#answer(request, path));
    if (status === 405) response.setHeader('Allow', this.#methods.join(', '));
    response.writeHead(status, {
      'Content-Type': contentType,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    });
    if (request.method !== 'HEAD') await write(response, body);
    response.end();
  }
}

function refusal(status: number): HttpAnswer {
  const body = `${STATUS_CODES[status]}\n`;
  return { status, contentType: 'text/plain; charset=utf-8', body };
}

/** Whether the request was made to this machine by a name that only this machine can have. */
function isMadeLocally({ headers }: IncomingMessage): boolean {
  const name = (headers.host ?? '').replace(/:\d*$/, '');
  return name === 'localhost' || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0;
}

async function write(response: ServerResponse, body: string | Iterable<string>): Promise<void> {
  if (typeof body === 'string') {
    response.write(body);
    return;
  }
  let chunk = '';
  let dueMs = performance.now() + chunkMsMax;
  for (const piece of body) {
    chunk += piece;
    if (chunk.length < chunkLength && performance.now() < dueMs) continue;
    if (chunk !== '' && !(await writeChunk(response, chunk))) return;
    chunk = '';
    dueMs = performance.now() + chunkMsMax;
  }
  response.write(chunk);
}

/** Resolves when there is room for more; with false if the client is gone. */
function writeChunk(response: ServerResponse, chunk: string): Promise<boolean> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve(false);
    const onClose = (): void => resolve(false);
    response.once('close', onClose);
    const goOn = (): void => {
      response.off('close', onClose);
      resolve(true);
    };
    if (response.write(chunk)) setImmediate(goOn);
    else response.once('drain', goOn);
  });
}
