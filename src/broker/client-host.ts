import type { Client } from './handler.ts';

/** A client's address as Kafka shows it in groups: Java prints a host's absent name and a slash. */
export function clientHost(client: Client): string {
  return `/${client.host}`;
}
