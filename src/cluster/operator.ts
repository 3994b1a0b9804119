import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import { PeerLink } from '../net/peer-link.ts';
import { type AdmittedNode, decodeNodeAdmitted, encodeNodeAdmitted } from '../state/commands.ts';
import { featureLevel } from '../state/entry-types.ts';
import type { ClusterNodes } from './cluster-nodes.ts';
import { encodeHello } from './hello.ts';
import { Requests } from './requests.ts';

/** The first byte of a request between nodes says what it is. */
export const RequestKind = {
  ...{ client: 1, remove: 2, snapshot: 3, add: 4, room: 5 },
  /** A request to the group of a tenant: its number, and what is asked of it. */
  tenant: 6,
  createTenant: 7,
  deleteTenant: 8,
} as const;

/** What an operator asks for: another node, one less, or something about tenants. */
export type MembersWish =
  | { readonly kind: 'add'; readonly node: AdmittedNode }
  | { readonly kind: 'remove'; readonly nodeId: number };
export interface TenantWish {
  readonly kind: 'createTenant' | 'deleteTenant';
  readonly name: string;
}
export type OperatorWish = MembersWish | TenantWish;

/** What came of it. */
export interface OperatorAnswer {
  readonly outcome: 'done' | 'refused' | 'not-leader';
  /** Why it was refused. */
  readonly reason: string;
}

export const notLeader: OperatorAnswer = { outcome: 'not-leader', reason: '' };
export const done: OperatorAnswer = { outcome: 'done', reason: '' };

export function refused(reason: string): OperatorAnswer {
  return { outcome: 'refused', reason };
}

/** No node has it: whoever speaks for an operator. */
export const operatorId = 2 ** 31 - 1;
const answerMsMax = 10_000;
const frameBytesMax = 64 * 1024;

export function encodeWish(wish: OperatorWish): Buffer {
  if (wish.kind === 'add') {
    return Buffer.concat([Buffer.of(RequestKind.add), encodeNodeAdmitted(wish.node)]);
  }
  if (wish.kind !== 'remove') {
    return Buffer.concat([Buffer.of(RequestKind[wish.kind]), Buffer.from(wish.name)]);
  }
  const request = Buffer.alloc(5);
  request[0] = RequestKind.remove;
  request.writeUInt32BE(wish.nodeId, 1);
  return request;
}

/** Throws a RangeError, or what the fields throw, if it is none. */
export function decodeWish(request: Buffer): OperatorWish {
  const [kind] = request;
  if (kind === RequestKind.add) {
    return { kind: 'add', node: decodeNodeAdmitted(request.subarray(1)) };
  }
  if (kind === RequestKind.createTenant || kind === RequestKind.deleteTenant) {
    const name = request.subarray(1).toString();
    return { kind: kind === RequestKind.createTenant ? 'createTenant' : 'deleteTenant', name };
  }
  if (kind !== RequestKind.remove || request.length !== 5) {
    throw new RangeError(`a request of kind ${kind} with ${request.length} bytes`);
  }
  return { kind: 'remove', nodeId: request.readUInt32BE(1) };
}

/** Asks every node, until the one that leads has done it. Throws with the reason if it does not. */
export async function askLeader(
  wish: OperatorWish,
  nodes: ClusterNodes,
  secret: string,
  clock: Clock,
): Promise<void> {
  const silent: string[] = [];
  for (const [id] of nodes) {
    const answer = await askNode(id, wish, nodes, secret, clock);
    if (typeof answer === 'string') silent.push(`node ${id}: ${answer}`);
    else if (answer.outcome === 'done') return;
    else if (answer.outcome === 'refused') throw failed(answer.reason);
  }
  throw failed(['no node leads the cluster', ...silent].join('; '));
}

/** The answer of one node, or why there is none. */
async function askNode(
  id: number,
  wish: OperatorWish,
  nodes: ClusterNodes,
  secret: string,
  clock: Clock,
): Promise<OperatorAnswer | string> {
  const address = { host: '', port: 0, peerHost: '', peerPort: 0 };
  const node = { nodeId: operatorId, directoryId: 'operator', ...address };
  let link: PeerLink | undefined;
  let cancel: () => void = () => undefined;
  try {
    return await new Promise<OperatorAnswer | string>((resolve) => {
      cancel = clock.after(answerMsMax, () => resolve('no answer'));
      const requests = new Requests((pieces) => link?.send(pieces) === true);
      link = new PeerLink({
        ...{ secret, frameBytesMax, clock },
        address: () => nodes.get(id)!,
        hello: () => encodeHello({ clusterId: '', node, level: featureLevel, tenantPortBase: 0 }),
        onHello: () => undefined,
        onUp: () => {
          requests.ask([encodeWish(wish)]).then((answer) => {
            resolve(answer === undefined ? 'it cannot answer' : parseAnswer(answer));
          });
        },
        onDown: () => resolve('it went away'),
        onRefused: resolve,
        onFrame: (frame) => requests.onAnswer(frame),
      });
    });
  } finally {
    cancel();
    link?.stop();
  }
}

export function parseAnswer(answer: Buffer): OperatorAnswer {
  return JSON.parse(answer.toString()) as OperatorAnswer;
}

function failed(reason: string): BrokerError {
  return new BrokerError('ADMIN_FAILED', reason);
}
