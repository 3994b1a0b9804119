import assert from 'node:assert/strict';
import test from 'node:test';
import { isSetting, settingDefault } from '../../src/config/broker-configs.ts';
import { parseValue } from '../../src/config/kafka-values.ts';
import {
  brokerSettingFor,
  topicConfigs,
  validateTopicConfigs,
} from '../../src/config/topic-configs.ts';

function errorOf(configs: Readonly<Record<string, string>>): string | undefined {
  const valid = validateTopicConfigs(new Map(Object.entries(configs)));
  return 'error' in valid ? valid.error : undefined;
}

test('every default is a value that may be set', () => {
  for (const [name, config] of topicConfigs) {
    const setting = brokerSettingFor(name);
    assert.equal(setting !== undefined, config.kind === 'enforced', name);
    const value = setting === undefined ? config.default : settingDefault(setting);
    assert.deepEqual(parseValue(name, value, config), { text: value }, name);
    assert.ok(config.doc.length > 10, name);
  }
});

test('what is enforced falls back to a setting of the broker', () => {
  for (const name of ['retention.ms', 'max.message.bytes', 'compression.type']) {
    const setting = brokerSettingFor(name);
    assert.ok(setting !== undefined && isSetting(setting), name);
  }
});

test('values come out in one form', () => {
  const given = new Map([
    ['retention.ms', ' +5 '],
    ['preallocate', 'TRUE'],
  ]);
  const valid = validateTopicConfigs(given);
  assert.ok('configs' in valid);
  assert.deepEqual(Object.fromEntries(valid.configs), { 'retention.ms': '5', preallocate: 'true' });
});

test('what does nothing is accepted and says so', () => {
  for (const [name, value] of [
    ['segment.bytes', '1073741824'],
    ['segment.ms', '60000'],
    ['flush.messages', '1'],
    ['min.cleanable.dirty.ratio', '0.01'],
    ['leader.replication.throttled.replicas', '0:1,1:2'],
    ['follower.replication.throttled.replicas', '*'],
  ] as const) {
    assert.equal(errorOf({ [name]: value }), undefined, name);
    assert.match(topicConfigs.get(name)!.doc, /without effect/, name);
  }
  assert.match(errorOf({ 'segment.bytes': '100' })!, /Value must be at least 1048576/);
  assert.match(
    errorOf({ 'leader.replication.throttled.replicas': 'all' })!,
    /Invalid value \[all\] for .* must be the literal '\*'/,
  );
});

test('what is not so here is refused, and what is so is accepted', () => {
  for (const [name, value] of [
    ['cleanup.policy', 'compact'],
    ['cleanup.policy', 'compact,delete'],
    ['cleanup.policy', ''],
    ['remote.storage.enable', 'true'],
    ['unclean.leader.election.enable', 'true'],
    ['local.retention.ms', '1000'],
  ] as const) {
    assert.match(errorOf({ [name]: value })!, new RegExp(`configuration ${name}: Value must be`));
  }
  assert.match(errorOf({ 'cleanup.policy': 'compact' })!, /compaction is not supported yet/);
  assert.equal(errorOf({ 'cleanup.policy': 'delete', 'min.insync.replicas': '3' }), undefined);
});

test('what is unknown or not supported is refused by its name', () => {
  assert.equal(errorOf({ 'no.such.key': '1' }), 'Unknown topic config name: no.such.key');
  assert.equal(
    errorOf({ 'compression.gzip.level': '6' }),
    'The topic config compression.gzip.level is not supported: compression levels cannot be chosen',
  );
});

test('the lags of compaction must not contradict each other', () => {
  assert.equal(
    errorOf({ 'min.compaction.lag.ms': '10', 'max.compaction.lag.ms': '2' }),
    'conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (2)',
  );
});
