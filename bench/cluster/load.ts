import { execFileSync } from 'node:child_process';
import { project } from '../paths.ts';
import type { LoadResult } from '../raw-client.ts';
import type { Nodes } from './nodes.ts';

/** The raw client, in a process of its own, against the node that leads (see raw-load.ts). */
export function load(nodes: Nodes, leader: number, mode: string, more: object): LoadResult {
  const { host, port } = nodes.target(leader);
  const text = JSON.stringify({ prefix: 'load', topics: 1, partitions: 8, ...more });
  const script = project('dist/bench/raw-load.js');
  const output = execFileSync(process.execPath, [script, mode, `${host}:${port}`, text]);
  return JSON.parse(output.toString()) as LoadResult;
}
