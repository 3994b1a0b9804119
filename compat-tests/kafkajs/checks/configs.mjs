/** describeConfigs and alterConfigs. */
import assert from 'node:assert/strict';
import kafkajs from 'kafkajs';
import { rejectsWith, uniqueName } from '../support/context.mjs';
import { check, until } from '../support/harness.mjs';

const { ConfigResourceTypes, ConfigSource } = kafkajs;
const TOPIC = ConfigResourceTypes.TOPIC;

/** The config entries of a topic, by name. */
async function entriesOf(t, topic, configNames) {
  const { resources } = await t.admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: TOPIC, name: topic, configNames }],
  });
  assert.equal(resources.length, 1);
  const [{ errorCode, resourceName, resourceType, configEntries }] = resources;
  assert.deepEqual([errorCode, resourceName, resourceType], [0, topic, TOPIC]);
  return new Map(configEntries.map((entry) => [entry.configName, entry]));
}

function alter(t, topic, entries, validateOnly = false) {
  const configEntries = Object.entries(entries).map(([name, value]) => ({ name, value }));
  return t.admin.alterConfigs({
    validateOnly,
    resources: [{ type: TOPIC, name: topic, configEntries }],
  });
}

check('configs: describe a topic', { fast: true }, async (t) => {
  const topic = await t.topic('config', 1, {
    'retention.ms': '123456',
    'message.timestamp.type': 'LogAppendTime',
  });
  const entries = await entriesOf(t, topic);
  assert.equal(entries.get('retention.ms').configValue, '123456');
  assert.equal(entries.get('retention.ms').configSource, ConfigSource.TOPIC_CONFIG);
  assert.equal(entries.get('retention.ms').isDefault, false);
  assert.equal(entries.get('message.timestamp.type').configValue, 'LogAppendTime');
  const untouched = entries.get('max.message.bytes');
  assert.ok(Number(untouched.configValue) > 0);
  assert.equal(untouched.configSource, ConfigSource.DEFAULT_CONFIG);
  assert.equal(untouched.isDefault, true);
  assert.ok([...entries.values()].every(({ isSensitive, readOnly }) => !isSensitive && !readOnly));
});

check('configs: describe only some names', { fast: true }, async (t) => {
  const topic = await t.topic('config-names');
  const entries = await entriesOf(t, topic, ['cleanup.policy', 'retention.ms']);
  assert.deepEqual([...entries.keys()].sort(), ['cleanup.policy', 'retention.ms']);
  assert.equal(entries.get('cleanup.policy').configValue, 'delete');
});

check('configs: synonyms', {}, async (t) => {
  const topic = await t.topic('synonyms', 1, { 'retention.ms': '5000000' });
  const describe = async (includeSynonyms) => {
    const resource = { type: TOPIC, name: topic, configNames: ['retention.ms'] };
    const { resources } = await t.admin.describeConfigs({ includeSynonyms, resources: [resource] });
    return resources[0].configEntries[0].configSynonyms;
  };
  const [first] = await describe(true);
  assert.equal(first.configName, 'retention.ms');
  assert.equal(first.configValue, '5000000');
  assert.equal(first.configSource, ConfigSource.TOPIC_CONFIG);
  assert.deepEqual(await describe(false), []);
});

check('configs: describe a broker', { fast: true }, async (t) => {
  const { brokers } = await t.admin.describeCluster();
  const { resources } = await t.admin.describeConfigs({
    resources: [{ type: ConfigResourceTypes.BROKER, name: String(brokers[0].nodeId) }],
  });
  assert.equal(resources[0].errorCode, 0);
  assert.ok(resources[0].configEntries.length > 0);
});

check('configs: describe several resources', {}, async (t) => {
  const topics = [await t.topic('config'), await t.topic('config', 1, { 'retention.ms': '77777' })];
  const { resources } = await t.admin.describeConfigs({
    resources: topics.map((name) => ({ type: TOPIC, name, configNames: ['retention.ms'] })),
  });
  const values = new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      configEntries[0].configValue,
    ]),
  );
  assert.equal(values.get(topics[1]), '77777');
  assert.notEqual(values.get(topics[0]), '77777');
});

check('configs: describe an unknown topic', {}, async (t) => {
  const resources = [{ type: TOPIC, name: uniqueName('unknown') }];
  await rejectsWith(t.admin.describeConfigs({ resources }), 'UNKNOWN_TOPIC_OR_PARTITION');
});

check('configs: alter replaces all that was set', { fast: true }, async (t) => {
  const topic = await t.topic('alter', 1, { 'retention.ms': '123456' });
  await alter(t, topic, { 'max.message.bytes': '5000' });
  await until('the value is there', async () => {
    const entries = await entriesOf(t, topic);
    return entries.get('max.message.bytes').configValue === '5000';
  });
  const retention = (await entriesOf(t, topic)).get('retention.ms');
  assert.notEqual(retention.configValue, '123456');
  assert.equal(retention.isDefault, true);
});

check('configs: an altered limit is in force', { fast: true }, async (t) => {
  const topic = await t.topic('alter-limit');
  const producer = await t.producer();
  const send = () => producer.send({ topic, messages: [{ value: 'x'.repeat(5_000) }] });
  await send();
  await alter(t, topic, { 'max.message.bytes': '1000' });
  await until('the limit is in force', async () => {
    const outcome = await send().catch((error) => error);
    return outcome.type === 'MESSAGE_TOO_LARGE';
  });
  await alter(t, topic, {});
  await until('the limit is gone', () =>
    send().then(
      () => true,
      () => false,
    ),
  );
});

check('configs: alter with validateOnly changes nothing', { fast: true }, async (t) => {
  const topic = await t.topic('alter-validate', 1, { 'retention.ms': '123456' });
  await alter(t, topic, { 'retention.ms': '99' }, true);
  const entries = await entriesOf(t, topic, ['retention.ms']);
  assert.equal(entries.get('retention.ms').configValue, '123456');
});

check('configs: alter with invalid values', { fast: true }, async (t) => {
  const topic = await t.topic('alter-invalid', 1, { 'retention.ms': '123456' });
  for (const entries of [
    { 'retention.ms': 'abc' },
    { 'cleanup.policy': 'what' },
    { 'no.such': '1' },
  ]) {
    await rejectsWith(alter(t, topic, entries), 'INVALID_CONFIG');
  }
  const entries = await entriesOf(t, topic, ['retention.ms']);
  assert.equal(entries.get('retention.ms').configValue, '123456');
});

check('configs: alter an unknown topic', {}, async (t) => {
  const altering = alter(t, uniqueName('unknown'), { 'retention.ms': '1' });
  await rejectsWith(altering, 'UNKNOWN_TOPIC_OR_PARTITION');
});
