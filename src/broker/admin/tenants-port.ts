import type { OperatorAnswer, TenantWish } from '../../cluster/operator.ts';
import type { Broker } from '../broker.ts';

/** A tenant as the node that is asked sees it. */
export interface TenantView {
  readonly number: number;
  readonly name: string;
  /** What its clients see as the cluster's id. */
  readonly clusterId: string;
  /** HOST:PORT where this node serves it; null while it does not. */
  readonly address: string | null;
  /** -1 while this node knows none. */
  readonly leaderId: number;
  /** Why this node cannot serve it. */
  readonly failure: string | null;
}

/** The tenants of a node, the default one included. */
export interface TenantsPort {
  views(): TenantView[];
  /** Undefined where there is no such tenant, or it is not served here. */
  brokerOf(name: string): Broker | undefined;
  /** Has it done by the node that leads the system group. */
  fulfil(wish: TenantWish): Promise<OperatorAnswer>;
}
