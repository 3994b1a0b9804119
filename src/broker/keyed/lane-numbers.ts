/**
 * A lane offset is what a consumer in keyed delivery sees as an offset: the slot of its group and
 * topic, and a number within the lane. Offsets below 2^44 are those of the log.
 */
const numbersPerSlot = 2 ** 44;

export function laneOffset(slot: number, n: number): number {
  return slot * numbersPerSlot + n;
}

export function isLaneOffset(offset: number): boolean {
  return offset >= numbersPerSlot && Number.isSafeInteger(offset);
}

export function slotOf(offset: number): number {
  return Math.floor(offset / numbersPerSlot);
}

export function numberOf(offset: number): number {
  return offset % numbersPerSlot;
}
