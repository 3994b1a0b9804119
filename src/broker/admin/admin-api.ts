import type { HttpAnswer } from '../../net/http-server.ts';
import type { NetCounters } from '../../net/limits.ts';
import type { Broker } from '../broker.ts';
import { clusterView } from './cluster-view.ts';
import { groupExport } from './group-export.ts';
import { groupDetails, groupIds, groupSummary, hasGroup } from './group-view.ts';
import { healthOf } from './health.ts';

const json = 'application/json; charset=utf-8';

const routes = [
  '/health',
  '/cluster',
  '/groups',
  '/groups/NAME',
  '/groups/NAME/export',
  '/metrics',
];

/**
 * What operators and their tools ask over HTTP. It only reads; names come percent-encoded.
 *
 *     GET /health               200, or 503 with the reasons
 *     GET /cluster              this node's view of the cluster
 *     GET /groups               all groups with their topics and figures
 *     GET /groups/NAME          one group, with members and partitions
 *     GET /groups/NAME/export   all that the journal knows of it
 *     GET /metrics              for Prometheus
 */
export class AdminApi {
  readonly #broker: Broker;
  readonly #net: NetCounters;
  /** From now on the broker answers what is in flight, and nothing else. */
  isStopping = false;

  constructor(broker: Broker, net: NetCounters) {
    this.#broker = broker;
    this.#net = net;
  }

  answer(path: string): HttpAnswer | Promise<HttpAnswer> {
    const words = wordsOf(path);
    if (words === undefined) return notFound(`no such path; there are ${routes.join(', ')}`);
    const [first = '', groupId, last] = words;
    if (words.length === 0) return answerJson(200, { paths: routes });
    if (words.length === 1) {
      if (first === 'health') return this.#health();
      if (first === 'metrics') return this.#metrics();
      if (first === 'cluster') return answerJson(200, clusterView(this.#broker));
      if (first === 'groups') return { status: 200, contentType: json, body: this.#groups() };
    }
    const isExport = words.length === 3 && last === 'export';
    if (first !== 'groups' || groupId === undefined || (words.length > 2 && !isExport)) {
      return notFound(`no such path; there are ${routes.join(', ')}`);
    }
    if (!hasGroup(this.#broker, groupId)) return notFound(`there is no group ${groupId}`);
    const pieces = isExport ? groupExport : groupDetails;
    return { status: 200, contentType: json, body: pieces(this.#broker, groupId) };
  }

  async #health(): Promise<HttpAnswer> {
    const health = await healthOf(this.#broker, this.isStopping);
    return answerJson(health.status === 'ok' ? 200 : 503, health);
  }

  async #metrics(): Promise<HttpAnswer> {
    // Loaded when it is first asked for: most brokers that are started never are.
    const { metricsText } = await import('./metrics.ts');
    return metricsText(this.#broker, this.#net);
  }

  *#groups(): Iterable<string> {
    let lead = '{"groups":[';
    for (const groupId of groupIds(this.#broker)) {
      if (!hasGroup(this.#broker, groupId)) continue;
      yield `${lead}${JSON.stringify(groupSummary(this.#broker, groupId))}`;
      lead = ',\n';
    }
    yield lead === ',\n' ? ']}\n' : `${lead}]}\n`;
  }
}

/** The parts of a path, decoded; undefined where it is no path. */
function wordsOf(path: string): string[] | undefined {
  try {
    return path
      .split('/')
      .filter((word) => word !== '')
      .map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function answerJson(status: number, value: unknown): HttpAnswer {
  return { status, contentType: json, body: `${JSON.stringify(value)}\n` };
}

function notFound(error: string): HttpAnswer {
  return answerJson(404, { error });
}
