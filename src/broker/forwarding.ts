import { RequestKind } from '../cluster/operator.ts';
import { ByteReader, ByteWriter } from '../core/bytes.ts';
import type { Reply } from '../net/answer-queue.ts';
import { ApiKey } from '../protocol/api-keys.ts';
import { decode } from '../protocol/codec.ts';
import { decodeRequestHead } from '../protocol/frame.ts';
import { describeConfigsRequest } from '../protocol/schema/32-describe-configs.ts';
import { ConfigResource } from '../state/commands.ts';
import type { Broker } from './broker.ts';
import type { Client, RequestContext } from './handler.ts';
import { isNodeId } from './resource-names.ts';

/**
 * What Kafka lets any broker answer, or passes on to the controller itself: clients send it to any
 * node, and some fail at once on an error. A node that does not lead passes it on to the one that
 * does, and the answer back.
 */
const forwarded: ReadonlySet<number> = new Set([
  ...[ApiKey.Metadata, ApiKey.DescribeTopicPartitions],
  ...[ApiKey.DescribeCluster, ApiKey.DescribeQuorum],
  ...[ApiKey.CreateTopics, ApiKey.DeleteTopics, ApiKey.CreatePartitions, ApiKey.DeleteRecords],
  ...[ApiKey.DescribeConfigs, ApiKey.AlterConfigs, ApiKey.IncrementalAlterConfigs],
  ...[ApiKey.ListConfigResources],
  ...[ApiKey.InitProducerId, ApiKey.DescribeProducers, ApiKey.OffsetForLeaderEpoch],
  ...[ApiKey.DescribeGroups, ApiKey.DeleteGroups, ApiKey.OffsetDelete],
]);

/** An election takes less, and clients wait for longer. */
const leaderMsMax = 5000;
/** Without a leader clients are told so rather than nothing. */
const metadataMsMax = 1500;
const retryMs = 5;
const leaderLookMs = 20;

export function isForwarded(apiKey: number): boolean {
  return forwarded.has(apiKey);
}

/**
 * Passes a request on to the leader, whoever that is by then; `serveHere` if it is this node, or
 * nobody and the answer can say so.
 */
export async function forward(
  frame: Buffer,
  apiKey: number,
  { broker, client, reply, disconnect }: RequestContext,
  serveHere: () => void,
): Promise<void> {
  const { nodes, replica, clock, nodeId } = broker;
  if (apiKey === ApiKey.DescribeConfigs && asksForNode(frame, nodeId)) return serveHere();
  const isMetadata = apiKey === ApiKey.Metadata;
  const endMs = clock.monotonicMs() + (isMetadata ? metadataMsMax : leaderMsMax);
  const request = [Buffer.of(RequestKind.client), encodeClient(client), frame];
  while (clock.monotonicMs() < endMs) {
    if (replica.mayAnswer) return serveHere();
    const { leaderId } = nodes;
    if (leaderId >= 0 && leaderId !== nodeId) {
      const answer = await whileLeading(broker, leaderId, nodes.port!.askNode(leaderId, request));
      if (answer !== undefined && answer.length > 0) return reply.send([answer]);
    }
    await new Promise<void>((resolve) => void clock.after(retryMs, resolve));
  }
  if (isMetadata) serveHere();
  else disconnect();
}

/** What a node was started with, only that node knows. */
function asksForNode(frame: Buffer, nodeId: number): boolean {
  const { apiVersion, bodyStart } = decodeRequestHead(frame, 0, frame.length);
  const { resources } = decode(describeConfigsRequest, apiVersion, frame, bodyStart);
  return resources.some(({ resourceType, resourceName }) => {
    return resourceType === ConfigResource.broker && isNodeId(resourceName, nodeId);
  });
}

/** The answer, or undefined once another node leads: this one may have been stopped. */
function whileLeading(
  { nodes, clock }: Broker,
  leaderId: number,
  answer: Promise<Buffer | undefined>,
): Promise<Buffer | undefined> {
  let isAnswered = false;
  const changed = new Promise<undefined>((resolve) => {
    const look = (): void => {
      if (isAnswered || nodes.leaderId !== leaderId) resolve(undefined);
      else clock.after(leaderLookMs, look);
    };
    clock.after(leaderLookMs, look);
  });
  return Promise.race([answer, changed]).finally(() => {
    isAnswered = true;
  });
}

function encodeClient({ host, localAddress, localPort, softwareName }: Client): Buffer {
  const writer = new ByteWriter(128).string(host).string(localAddress).uvarint(localPort);
  const facts = writer.string(softwareName).finish();
  return Buffer.concat([new ByteWriter(4).u32(facts.length).finish(), facts]);
}

/** The other side: answers what another node passes on. Empty if this one does not lead. */
export function serveForwarded(broker: Broker, request: Buffer): Promise<readonly Uint8Array[]> {
  const reader = new ByteReader(request);
  const factsEnd = 4 + reader.u32();
  const client: Client = {
    ...{ connectionId: -1, host: reader.string(), localAddress: reader.string() },
    ...{ localPort: reader.uvarint(), softwareName: reader.string(), silentMs: 0 },
  };
  const frame = request.subarray(factsEnd);
  return new Promise((resolve, reject) => {
    const { apiKey, apiVersion, correlationId, clientId, bodyStart } = decodeRequestHead(
      frame,
      0,
      frame.length,
    );
    const handler = broker.apis.get(apiKey);
    if (handler === undefined || !isForwarded(apiKey) || !broker.replica.mayAnswer) {
      // Whoever asks tries again, and by then it is awake.
      if (broker.replica.consensus.isAsleep) broker.replica.consensus.touch();
      resolve([]);
      return;
    }
    const reply: Reply = {
      send(pieces, afterWritten) {
        const copied = (pieces ?? []).map((piece) => Buffer.from(piece));
        afterWritten?.(true);
        resolve(broker.replica.mayAnswer ? copied : []);
      },
      onTurn: (callback) => callback(),
    };
    const context: RequestContext = {
      ...{ broker, client, clientId, apiVersion, reply },
      produces: broker.produceQueues.open(reject),
      onClosed: () => () => undefined,
      fail: reject,
      nameSoftware: () => undefined,
      disconnect: () => reject(new Error('the request failed')),
    };
    handler.serve(frame, bodyStart, correlationId, context);
  });
}
