import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below those that systems give to outgoing connections, which might take one meanwhile. */
const [lowest, highest] = [10_000, 32_000];

/** Ports of loopback that nobody listens on. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = new Map<number, Server>();
  while (servers.size < count) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    const server = servers.has(port) ? undefined : await listen(port);
    if (server !== undefined) servers.set(port, server);
  }
  for (const server of servers.values()) server.close();
  await Promise.all([...servers.values()].map((server) => once(server, 'close')));
  return [...servers.keys()];
}

/** Undefined if somebody else has the port. */
function listen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
