/** How the resource of a single broker may be named: as Java reads an integer. */

export function isInteger(name: string): boolean {
  return /^[+-]?\d+$/.test(name);
}

export function isNodeId(name: string, nodeId: number): boolean {
  return isInteger(name) && Number(name) === nodeId;
}
