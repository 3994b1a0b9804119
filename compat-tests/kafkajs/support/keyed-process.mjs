/** Consumers and brokers as processes, for the checks that kill them. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { until } from './harness.mjs';

const memberScript = fileURLToPath(new URL('keyed-member.mjs', import.meta.url));

async function kill(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** A member of `group` in a process of its own, watched by the group's sentinel. */
export async function startMember(t, group, { handleMs }) {
  const { sentinel, topic, groupId } = group;
  const args = [t.suite.bootstrap, topic, groupId, String(handleMs)];
  const child = fork(memberScript, args);
  t.onClose('process', () => kill(child));
  const member = { name: `process ${child.pid}`, child, handled: 0, joins: 0 };
  child.on('message', ([event, key, number]) => {
    if (event === 'join') member.joins++;
    if (event === 'begin') sentinel.begin(member.name, key, number);
    if (event === 'end') {
      sentinel.end(key, number);
      member.handled++;
    }
  });
  await until('the process has joined', () => member.joins > 0);
  return member;
}
