/** The network between the nodes of a cluster on loopback: each way can be cut by itself. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePorts } from '../free-ports.ts';

interface Way {
  readonly port: number;
  readonly server: Server;
  readonly sockets: Set<Socket>;
  isCut: boolean;
}

export class PeerProxies {
  readonly #ways = new Map<string, Way>();

  /** `target`: the port at which a node listens for the others. */
  static async create(
    ids: readonly number[],
    target: (id: number) => number,
  ): Promise<PeerProxies> {
    const proxies = new PeerProxies();
    const pairs = ids.flatMap((from) => ids.map((to) => [from, to] as const));
    const ports = await freePorts(pairs.length);
    for (const [i, [from, to]] of pairs.entries()) {
      if (from !== to) await proxies.#open(`${from}>${to}`, ports[i]!, target(to));
    }
    return proxies;
  }

  #open(name: string, port: number, target: number): Promise<void> {
    const sockets = new Set<Socket>();
    const server = createServer((inner) => {
      const outer = connect(target, '127.0.0.1');
      for (const [socket, other] of [
        [inner, outer],
        [outer, inner],
      ] as const) {
        sockets.add(socket);
        socket.on('error', () => other.destroy());
        socket.on('close', () => {
          sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
      if (way.isCut) for (const socket of [inner, outer]) socket.pause();
    });
    const way: Way = { port, server, sockets, isCut: false };
    this.#ways.set(name, way);
    return new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  }

  port(from: number, to: number): number {
    return this.#ways.get(`${from}>${to}`)!.port;
  }

  /** Nothing that one node says gets to the other any more; nobody is told, as in a real network. */
  cut(from: number, to: number): void {
    const way = this.#ways.get(`${from}>${to}`)!;
    way.isCut = true;
    for (const socket of way.sockets) socket.pause();
  }

  /** What lay on the way arrives. */
  heal(): void {
    for (const way of this.#ways.values()) {
      way.isCut = false;
      for (const socket of way.sockets) socket.resume();
    }
  }

  close(): void {
    for (const { server, sockets } of this.#ways.values()) {
      server.close();
      for (const socket of sockets) socket.destroy();
    }
  }
}
