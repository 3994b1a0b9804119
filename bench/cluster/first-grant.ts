/**
 * A leader is killed while a group in keyed delivery has a million records to go: how long after
 * another one leads until it could give the group something, and until it does. Three members of
 * Kafka's Java client consume.
 */

import { JavaProcess } from '../../scripts/rounds/java-process.ts';
import type { ClusterView } from '../../src/broker/admin/cluster-view.ts';
import { delay, type KeylaneNodes } from './nodes.ts';

export const topic = 'backlog-0';
const group = 'workers';
const pollMs = 5;

/** What a node says over HTTP; undefined if it is not there. */
async function askAdmin(origin: string, path: string): Promise<string | undefined> {
  try {
    return await (await fetch(`${origin}${path}`)).text();
  } catch {
    return undefined;
  }
}

async function leads(origin: string, id: number): Promise<boolean> {
  const text = await askAdmin(origin, '/cluster');
  return text !== undefined && (JSON.parse(text) as ClusterView).leaderId === id;
}

async function figure(origin: string, name: string): Promise<number> {
  const metrics = (await askAdmin(origin, '/metrics')) ?? '';
  const line = new RegExp(`^keylane_keyed_${name}\\{group="${group}".*\\} (\\d+)$`, 'm');
  return Number(line.exec(metrics)?.[1] ?? 0);
}

const delivered = (origin: string) => figure(origin, 'delivered_records_total');

function startMembers(nodes: KeylaneNodes): JavaProcess {
  const brokers = nodes.ids.map((id) => `127.0.0.1:${nodes.target(id).port}`).join(',');
  return new JavaProcess(['LoadGroup', brokers, topic, group, '3'], () => undefined);
}

export interface FirstGrant {
  /** From the kill to a leader. */
  readonly electedMs: number;
  /** From there until it has loaded records that it may grant. */
  readonly readyMs: number;
  /** And to the first one: members that have enough in hand work on that before. */
  readonly grantedMs: number;
}

/** The backlog is in the topic; answers how it went, round by round. */
export async function firstGrants(nodes: KeylaneNodes, rounds: number): Promise<FirstGrant[]> {
  const members = startMembers(nodes);
  try {
    const found: FirstGrant[] = [];
    for (let round = 0; round < rounds; round++) {
      const leader = await nodes.whole();
      const before = await delivered(nodes.admin(leader));
      while ((await delivered(nodes.admin(leader))) < before + 500) await delay(pollMs);
      const killedMs = performance.now();
      nodes.signal(leader, 'SIGKILL');
      const others = nodes.ids.filter((id) => id !== leader);
      let next: number | undefined;
      while (next === undefined) {
        for (const id of others) if (await leads(nodes.admin(id), id)) next = id;
        await delay(pollMs);
      }
      const electedMs = performance.now();
      while ((await figure(nodes.admin(next), 'ready_records')) === 0) await delay(pollMs);
      const readyMs = performance.now() - electedMs;
      while ((await delivered(nodes.admin(next))) === 0) await delay(pollMs);
      const grantedMs = performance.now() - electedMs;
      found.push({ electedMs: electedMs - killedMs, readyMs, grantedMs });
      nodes.start(leader);
    }
    return found;
  } finally {
    await members.stop();
  }
}
