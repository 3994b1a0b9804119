import { resolveDelivery } from '../config/delivery-settings.ts';
import type { Broker } from './broker.ts';

/**
 * How many partitions a topic gets that is made without a number. In keyed delivery they are lanes,
 * one consumer for each at most, and cost nothing: so it gets `keyed.lanes` of them.
 */
export function defaultPartitionCount(
  { settings }: Broker,
  topicName: string,
  configs: ReadonlyMap<string, string>,
): number {
  const group = new Map<string, string>();
  const { mode } = resolveDelivery({ group, topicName, topic: configs, broker: settings });
  return mode === 'keyed' ? settings['keyed.lanes'] : settings['num.partitions'];
}
