import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import { PeerLink } from '../net/peer-link.ts';
import type { ClusterNodes } from './cluster-nodes.ts';
import { encodeHello } from './hello.ts';
import { Requests } from './requests.ts';

/** The first byte of a request between nodes says what it is. */
export const RequestKind = { client: 1, remove: 2, snapshot: 3 } as const;

/** What came of an operator's wish. */
export interface Removal {
  readonly outcome: 'done' | 'refused' | 'not-leader';
  /** Why it was refused. */
  readonly reason: string;
}

/** No node has it: whoever speaks for an operator. */
const operatorId = 2 ** 31 - 1;
const answerMsMax = 10_000;
const frameBytesMax = 64 * 1024;

export function encodeRemove(nodeId: number): Buffer {
  const request = Buffer.alloc(5);
  request[0] = RequestKind.remove;
  request.writeUInt32BE(nodeId, 1);
  return request;
}

export function decodeRemove(request: Buffer): number {
  if (request.length !== 5) throw new RangeError('a request to remove a node has five bytes');
  return request.readUInt32BE(1);
}

/** Asks every node, until the one that leads has done it. Throws with the reason if it does not. */
export async function removeNode(
  nodeId: number,
  nodes: ClusterNodes,
  secret: string,
  clock: Clock,
): Promise<void> {
  const silent: string[] = [];
  for (const [id] of nodes) {
    const removal = await askNode(id, nodeId, nodes, secret, clock);
    if (typeof removal === 'string') silent.push(`node ${id}: ${removal}`);
    else if (removal.outcome === 'done') return;
    else if (removal.outcome === 'refused') throw failed(removal.reason);
  }
  throw failed(['no node leads the cluster', ...silent].join('; '));
}

/** The answer of one node, or why there is none. */
async function askNode(
  id: number,
  nodeId: number,
  nodes: ClusterNodes,
  secret: string,
  clock: Clock,
): Promise<Removal | string> {
  const address = { host: '', port: 0, peerHost: '', peerPort: 0 };
  const node = { nodeId: operatorId, directoryId: 'operator', ...address };
  let link: PeerLink | undefined;
  let cancel: () => void = () => undefined;
  try {
    return await new Promise<Removal | string>((resolve) => {
      cancel = clock.after(answerMsMax, () => resolve('no answer'));
      const requests = new Requests((pieces) => link?.send(pieces) === true);
      link = new PeerLink({
        ...{ secret, frameBytesMax, clock },
        address: () => nodes.get(id)!,
        hello: () => encodeHello({ clusterId: '', node }),
        onHello: () => undefined,
        onUp: () => {
          requests.ask([encodeRemove(nodeId)]).then((answer) => {
            resolve(answer === undefined ? 'it cannot answer' : parse(answer));
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

function parse(answer: Buffer): Removal {
  return JSON.parse(answer.toString()) as Removal;
}

function failed(reason: string): BrokerError {
  return new BrokerError('ADMIN_FAILED', reason);
}
