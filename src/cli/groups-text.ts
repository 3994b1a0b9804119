import type { GroupDetails, GroupSummary, TopicView } from '../broker/admin/group-view.ts';
import { type Cell, table } from './text-table.ts';

/** What `keylane groups` says to people. */

const topicColumns = [
  ...['MODE', 'CONSUMERS', 'LANES', 'UNFINISHED', 'READY', 'HELD', 'LEASED KEYS'],
  ...['WAITING', 'REDELIVERED', 'DEAD LETTERS', 'OLDEST LEASE'],
];

/** One line for each group and topic. */
export function groupsLines(groups: readonly GroupSummary[]): string[] {
  if (groups.length === 0) return ['no groups'];
  const byName = [...groups].sort((a, b) => (a.group < b.group ? -1 : 1));
  const rows = byName.flatMap((group) =>
    group.topics.length === 0
      ? [[group.group, '-']]
      : group.topics.map((topic) => [
          group.group,
          topic.topic,
          ...topicCells(topic, group.members),
        ]),
  );
  const hints = byName.flatMap(({ group, topics }) =>
    topics.flatMap(({ topic, hints }) => hints.map((hint) => `${group}, ${topic}: ${hint}`)),
  );
  return [...table(['GROUP', 'TOPIC', ...topicColumns], rows), ...below(hints)];
}

/** One group with its members. */
export function groupLines(group: GroupDetails): string[] {
  const { state, generation, members, topics } = group;
  const facts = [state, ...(generation === null ? [] : [`generation ${generation}`])];
  const lines = [`${group.group}: ${facts.join(', ')}, consumers: ${members.length}`];
  const rows = topics.map((topic) => [topic.topic, ...topicCells(topic, members.length)]);
  if (rows.length > 0) lines.push('', ...table(['TOPIC', ...topicColumns], rows));
  const memberRows = topics.flatMap((topic) =>
    topic.members.map((one) => [
      topic.topic,
      one.member,
      one.client,
      one.lanes.join(',') || '-',
      one.inHand,
      one.window,
      one.handledNotCommitted,
      leaseText(one.oldestLease),
    ]),
  );
  const memberColumns = ['TOPIC', 'MEMBER', 'CLIENT', 'LANES', 'IN HAND', 'WINDOW'];
  if (memberRows.length > 0) {
    const head = [...memberColumns, 'HANDLED, NOT COMMITTED', 'OLDEST LEASE'];
    lines.push('', ...table(head, memberRows));
  }
  const partitionRows = topics.flatMap((topic) =>
    topic.partitions
      .filter(({ unfinished }) => unfinished > 0)
      .map(({ partition, logStart, end, low, finishedAbove, unfinished }) => [
        ...[topic.topic, partition, logStart, end, low, finishedAbove, unfinished],
      ]),
  );
  if (partitionRows.length > 0) {
    const head = ['TOPIC', 'PARTITION', 'LOG START', 'LOG END', 'ALL DONE BELOW', 'DONE ABOVE'];
    lines.push('', ...table([...head, 'UNFINISHED'], partitionRows));
  }
  const hints = topics.flatMap(({ topic, hints }) => hints.map((hint) => `${topic}: ${hint}`));
  return [...lines, ...below(hints)];
}

function topicCells(topic: TopicView, members: number): Cell[] {
  const { mode, configuredMode, lanes, unfinished, ready } = topic;
  const shownMode = mode === configuredMode ? mode : `${mode} (to be ${configuredMode})`;
  const common = [shownMode, members, lanes, unfinished];
  if (mode === 'log') return common;
  const { retry, suspect, deadLetter, halted } = topic.waiting;
  return [
    ...common,
    ready,
    topic.held + topic.heldByWaiting,
    topic.leasedKeys,
    retry + suspect + deadLetter + halted,
    topic.redelivered,
    topic.deadLetters,
    leaseText(topic.oldestLease),
  ];
}

function leaseText(lease: TopicView['oldestLease']): string {
  if (lease === null) return '-';
  const { key, keyHex, member, ageMs, partition, offset } = lease;
  const shown =
    key !== undefined ? JSON.stringify(key) : keyHex === undefined ? '-' : `0x${keyHex}`;
  return `${ageText(ageMs)}, key ${shown}, ${partition}:${offset}, ${member}`;
}

/** Two digits say enough: 850 ms, 12 s, 3 min, 5 h. */
export function ageText(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${Math.round(ms / 3_600_000)} h`;
}

function below(hints: readonly string[]): string[] {
  return hints.length === 0 ? [] : ['', ...hints];
}
