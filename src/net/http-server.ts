/** A small HTTP server for operators: it reads, and changes nothing. */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { BrokerError } from '../core/errors.ts';
import type { HostPort } from './listeners.ts';

export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  /** Long ones in pieces, which are made as they are sent: in between, others get their turns. */
  readonly body: string | Iterable<string>;
}

export interface HttpServerOptions {
  /** `path` is as it was sent, but without a query. */
  readonly answer: (path: string) => HttpAnswer | Promise<HttpAnswer>;
  /** An answer could not be made. */
  readonly onError: (error: unknown) => void;
}

/** Scrapers and people are few; more are closed at once. */
const connectionsMax = 64;
const requestMsMax = 10_000;
const keepAliveMs = 10_000;
/** Pieces are gathered up to this length. */
const chunkLength = 64 * 1024;

export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #server: Server;

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

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!isRead) response.setHeader('Allow', 'GET, HEAD');
    const path = (request.url ?? '/').split('?', 1)[0]!;
    const { status, contentType, body } = isRead ? await this.#options.answer(path) : refused;
    response.writeHead(status, {
      'Content-Type': contentType,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    });
    if (request.method !== 'HEAD') await write(response, body);
    response.end();
  }
}

const refused: HttpAnswer = {
  status: 405,
  contentType: 'text/plain; charset=utf-8',
  body: `${STATUS_CODES[405]}\n`,
};

async function write(response: ServerResponse, body: string | Iterable<string>): Promise<void> {
  if (typeof body === 'string') {
    response.write(body);
    return;
  }
  let chunk = '';
  for (const piece of body) {
    chunk += piece;
    if (chunk.length < chunkLength) continue;
    if (!(await writeChunk(response, chunk))) return;
    chunk = '';
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
