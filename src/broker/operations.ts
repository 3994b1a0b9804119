/**
 * Operations that a client may do, as bits of Kafka's AclOperation codes. Without access control
 * everything that the kind of resource knows is allowed.
 */

function bits(codes: readonly number[]): number {
  return codes.reduce((all, code) => all | (1 << code), 0);
}

const read = 3;
const write = 4;
const create = 5;
const remove = 6;
const alter = 7;
const describe = 8;
const clusterAction = 9;
const describeConfigs = 10;
const alterConfigs = 11;
const idempotentWrite = 12;

export const allClusterOperations = bits([
  create,
  alter,
  describe,
  clusterAction,
  describeConfigs,
  alterConfigs,
  idempotentWrite,
]);

export const allTopicOperations = bits([
  read,
  write,
  create,
  remove,
  alter,
  describe,
  describeConfigs,
  alterConfigs,
]);
