import { areEqualSecrets } from '../../core/secrets.ts';
import type { HttpAnswer, HttpChange } from '../../net/http-server.ts';
import type { NetCounters } from '../../net/limits.ts';
import type { Broker } from '../broker.ts';
import { clusterView } from './cluster-view.ts';
import { groupExport } from './group-export.ts';
import { groupDetails, groupIds, groupSummary, hasGroup } from './group-view.ts';
import { type Health, healthOf, withTenants } from './health.ts';
import type { TenantsPort } from './tenants-port.ts';

const json = 'application/json; charset=utf-8';

const routes = [
  '/health',
  '/cluster',
  '/groups',
  '/groups/NAME',
  '/groups/NAME/export',
  '/metrics',
  '/tenants',
];

export interface AdminApiOptions {
  /** Of the default tenant. */
  readonly broker: Broker;
  readonly net: NetCounters;
  readonly tenants: TenantsPort;
  /** Who knows it may change something; empty: nobody may. */
  readonly secret: string;
}

/**
 * What operators and their tools ask over HTTP; names come percent-encoded.
 *
 *     GET /health               200, or 503 with the reasons; tenants that are not well
 *     GET /cluster              this node's view of the cluster
 *     GET /groups               all groups with their topics and figures
 *     GET /groups/NAME          one group, with members and partitions
 *     GET /groups/NAME/export   all that the journal knows of it
 *     GET /metrics              for Prometheus
 *     GET /tenants              all tenants, and where this node serves them
 *     GET /tenants/NAME/…       all of the above, of a tenant instead of the default one
 *     PUT /tenants/NAME         creates a tenant
 *     DELETE /tenants/NAME      deletes it, with all that it has
 */
export class AdminApi {
  readonly #options: AdminApiOptions;
  /** From now on the broker answers what is in flight, and nothing else. */
  isStopping = false;

  constructor(options: AdminApiOptions) {
    this.#options = options;
  }

  answer(path: string): HttpAnswer | Promise<HttpAnswer> {
    const words = wordsOf(path);
    if (words === undefined) return noSuchPath;
    const [first, name = ''] = words;
    const { tenants } = this.#options;
    if (first === 'health' && words.length === 1) return this.#nodeHealth();
    if (first !== 'tenants') return this.#answerOf(this.#options.broker, words);
    if (words.length === 1) return answerJson(200, { tenants: tenants.views() });
    const broker = tenants.brokerOf(name);
    if (broker === undefined) return notFound(`this node serves no tenant ${name}`);
    return this.#answerOf(broker, words.slice(2));
  }

  /** Tenants are created and deleted: see the class. */
  async change({ method, path, authorization }: HttpChange): Promise<HttpAnswer> {
    const { secret, tenants } = this.#options;
    if (secret === '') return answerJson(403, { error: 'admin.secret is not set' });
    if (!areEqualSecrets(authorization, `Bearer ${secret}`)) {
      return answerJson(401, { error: 'the secret is not that of admin.secret' });
    }
    const [first, name, ...rest] = wordsOf(path) ?? [];
    if (first !== 'tenants' || name === undefined || rest.length > 0) return noSuchPath;
    const kind = method === 'PUT' ? 'createTenant' : 'deleteTenant';
    const { outcome, reason } = await tenants.fulfil({ kind, name });
    if (outcome === 'done') return answerJson(200, {});
    if (outcome === 'refused') return answerJson(409, { error: reason });
    return answerJson(503, { error: 'there is no leader that could do it' });
  }

  #answerOf(broker: Broker, words: readonly string[]): HttpAnswer | Promise<HttpAnswer> {
    const [first = '', groupId, last] = words;
    if (words.length === 0) return answerJson(200, { paths: routes });
    if (words.length === 1) {
      if (first === 'health') return this.#health(broker);
      if (first === 'metrics') return this.#metrics(broker);
      if (first === 'cluster') return answerJson(200, clusterView(broker));
      if (first === 'groups') return { status: 200, contentType: json, body: groupsOf(broker) };
    }
    const isExport = words.length === 3 && last === 'export';
    if (first !== 'groups' || groupId === undefined || (words.length > 2 && !isExport)) {
      return noSuchPath;
    }
    if (!hasGroup(broker, groupId)) return notFound(`there is no group ${groupId}`);
    const pieces = isExport ? groupExport : groupDetails;
    return { status: 200, contentType: json, body: pieces(broker, groupId) };
  }

  async #nodeHealth(): Promise<HttpAnswer> {
    const { broker, tenants } = this.#options;
    const [, ...others] = tenants.views();
    return answerHealth(withTenants(await healthOf(broker, this.isStopping), others));
  }

  async #health(broker: Broker): Promise<HttpAnswer> {
    return answerHealth(await healthOf(broker, this.isStopping));
  }

  async #metrics(broker: Broker): Promise<HttpAnswer> {
    // Loaded when it is first asked for: most brokers that are started never are.
    const { metricsText } = await import('./metrics.ts');
    return metricsText(broker, this.#options.net);
  }
}

function answerHealth(health: Health): HttpAnswer {
  return answerJson(health.status === 'ok' ? 200 : 503, health);
}

function* groupsOf(broker: Broker): Iterable<string> {
  let lead = '{"groups":[';
  for (const groupId of groupIds(broker)) {
    if (!hasGroup(broker, groupId)) continue;
    yield `${lead}${JSON.stringify(groupSummary(broker, groupId))}`;
    lead = ',\n';
  }
  yield lead === ',\n' ? ']}\n' : `${lead}]}\n`;
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

const noSuchPath = notFound(`no such path; there are ${routes.join(', ')}`);

function notFound(error: string): HttpAnswer {
  return answerJson(404, { error });
}
