/** Configs and client quotas. */
import assert from 'node:assert/strict';
import {
  ClientQuotaEntityTypes,
  ClientQuotaKeys,
  ClientQuotaMatchTypes,
  ConfigResourceTypes,
  ConfigSources,
  IncrementalAlterConfigOperationTypes,
} from '@platformatic/kafka';
import { check, until } from '../../kafkajs/support/harness.mjs';
import { rejectsWith, uniqueName } from '../support/context.mjs';

const { TOPIC, BROKER } = ConfigResourceTypes;
const { SET, DELETE, APPEND, SUBTRACT } = IncrementalAlterConfigOperationTypes;

/** The configs of a topic, by name. */
async function configsOf(t, topic, options = {}) {
  const { configurationKeys, ...rest } = options;
  const [{ resourceName, configs }] = await t.admin.describeConfigs({
    resources: [{ resourceType: TOPIC, resourceName: topic, configurationKeys }],
    ...rest,
  });
  assert.equal(resourceName, topic);
  return new Map(configs.map((config) => [config.name, config]));
}

async function becomes(t, topic, name, value) {
  await until(`${name} is ${value}`, async () => {
    return (await configsOf(t, topic)).get(name).value === value;
  });
}

function alterIncrementally(t, topic, changes, validateOnly = false) {
  return alterResource(t.admin, TOPIC, topic, changes, validateOnly);
}

function alterResource(admin, resourceType, resourceName, changes, validateOnly = false) {
  const configs = changes.map(([configOperation, name, value]) => ({
    name,
    configOperation,
    ...(value === undefined ? {} : { value }),
  }));
  return admin.incrementalAlterConfigs({
    resources: [{ resourceType, resourceName, configs }],
    validateOnly,
  });
}

check('configs: describe a topic', { fast: true }, async (t) => {
  const topic = await t.topic('config', 1, { 'retention.ms': '123456' });
  const configs = await configsOf(t, topic);
  assert.equal(configs.get('retention.ms').value, '123456');
  assert.equal(configs.get('retention.ms').configSource, ConfigSources.DYNAMIC_TOPIC_CONFIG);
  assert.equal(configs.get('cleanup.policy').value, 'delete');
  assert.equal(configs.get('cleanup.policy').configSource, ConfigSources.DEFAULT_CONFIG);
});

check('configs: describe some names, with synonyms and documentation', {}, async (t) => {
  const topic = await t.topic('config-some', 1, { 'retention.ms': '123456' });
  const configs = await configsOf(t, topic, {
    configurationKeys: ['retention.ms'],
    includeSynonyms: true,
    includeDocumentation: true,
  });
  assert.deepEqual([...configs.keys()], ['retention.ms']);
  const { synonyms, documentation } = configs.get('retention.ms');
  assert.equal(synonyms[0].value, '123456');
  assert.ok(documentation.length > 0);
});

check('configs: describe a broker', {}, async (t) => {
  const { brokers } = await t.admin.metadata({ topics: [] });
  const [nodeId] = brokers.keys();
  const [{ configs }] = await t.admin.describeConfigs({
    resources: [{ resourceType: BROKER, resourceName: String(nodeId) }],
  });
  assert.ok(configs.length > 0);
});

check('configs: what is set for one broker is what its topics fall back to', {}, async (t) => {
  const topic = await t.topic('broker-configs');
  const { brokers } = await t.admin.metadata({ topics: [] });
  const nodeId = String([...brokers.keys()][0]);
  const name = 'log.retention.bytes';
  // Large enough to change nothing for other checks.
  const value = '50000000001';
  const becomesOf = (expected) =>
    until(`retention.bytes falls back to ${expected.join(', ')}`, async () => {
      const asked = { configurationKeys: ['retention.bytes'], includeSynonyms: true };
      const { synonyms } = (await configsOf(t, topic, asked)).get('retention.bytes');
      return synonyms.map(({ value, source }) => `${value}@${source}`).join() === expected.join();
    });
  await alterResource(t.admin, BROKER, nodeId, [[SET, name, value]]);
  await becomesOf([`${value}@2`, '-1@5']);
  await alterResource(t.admin, BROKER, nodeId, [[DELETE, name]]);
  await becomesOf(['-1@5']);
  const other = alterResource(t.newAdmin({ retries: 0 }), BROKER, '4711', [[SET, name, value]]);
  await assert.rejects(other);
});

check('configs: describe an unknown topic', {}, async (t) => {
  const resources = [{ resourceType: TOPIC, resourceName: uniqueName('unknown') }];
  const describing = t.newAdmin({ retries: 0 }).describeConfigs({ resources });
  await rejectsWith(describing, 'UNKNOWN_TOPIC_OR_PARTITION');
});

check('configs: alterConfigs replaces all that was set', { fast: true }, async (t) => {
  const topic = await t.topic('alter', 1, { 'retention.ms': '123456' });
  const configs = [{ name: 'max.message.bytes', value: '5000' }];
  await t.admin.alterConfigs({
    resources: [{ resourceType: TOPIC, resourceName: topic, configs }],
  });
  await becomes(t, topic, 'max.message.bytes', '5000');
  assert.notEqual((await configsOf(t, topic)).get('retention.ms').value, '123456');
});

check('configs: incrementalAlterConfigs sets and deletes', { fast: true }, async (t) => {
  const topic = await t.topic('incremental', 1, { 'retention.ms': '123456' });
  await alterIncrementally(t, topic, [[SET, 'max.message.bytes', '5000']]);
  await becomes(t, topic, 'max.message.bytes', '5000');
  assert.equal((await configsOf(t, topic)).get('retention.ms').value, '123456');
  await alterIncrementally(t, topic, [[DELETE, 'retention.ms']]);
  await until('the default is back', async () => {
    const { configSource } = (await configsOf(t, topic)).get('retention.ms');
    return configSource === ConfigSources.DEFAULT_CONFIG;
  });
  assert.equal((await configsOf(t, topic)).get('max.message.bytes').value, '5000');
});

check('configs: incrementalAlterConfigs appends and subtracts', { fast: true }, async (t) => {
  const topic = await t.topic('append', 1, { 'cleanup.policy': 'delete' });
  if (process.env.COMPAT_BROKER === 'keylane') {
    // Its only list is the cleanup policy, and compaction is refused by name until it is there.
    const compacted = alterIncrementally(t, topic, [[APPEND, 'cleanup.policy', 'compact']]);
    await rejectsWith(compacted, 'INVALID_CONFIG');
    return;
  }
  await alterIncrementally(t, topic, [[APPEND, 'cleanup.policy', 'compact']]);
  await becomes(t, topic, 'cleanup.policy', 'delete,compact');
  await alterIncrementally(t, topic, [[SUBTRACT, 'cleanup.policy', 'delete']]);
  await becomes(t, topic, 'cleanup.policy', 'compact');
});

check('configs: incrementalAlterConfigs, validateOnly and errors', {}, async (t) => {
  const topic = await t.topic('incremental-invalid', 1, { 'retention.ms': '123456' });
  await alterIncrementally(t, topic, [[SET, 'retention.ms', '5']], true);
  const invalid = alterIncrementally(t, topic, [[SET, 'retention.ms', 'abc']]);
  await rejectsWith(invalid, 'INVALID_CONFIG');
  const twice = alterIncrementally(t, topic, [
    [SET, 'retention.ms', '1'],
    [DELETE, 'retention.ms'],
  ]);
  await rejectsWith(twice, 'INVALID_REQUEST');
  assert.equal((await configsOf(t, topic)).get('retention.ms').value, '123456');
});

// Keylane has no quotas yet, and does not claim to.
const quotasCheck = process.env.COMPAT_BROKER === 'keylane' ? () => undefined : check;
quotasCheck('configs: client quotas', {}, async (t) => {
  const entityType = ClientQuotaEntityTypes.CLIENT_ID;
  const entityName = uniqueName('client');
  const key = ClientQuotaKeys.PRODUCER_BYTE_RATE;
  const alter = (op) =>
    t.admin.alterClientQuotas({ entries: [{ entities: [{ entityType, entityName }], ops: [op] }] });
  const values = async () => {
    const entries = await t.admin.describeClientQuotas({
      components: [{ entityType, matchType: ClientQuotaMatchTypes.EXACT, match: entityName }],
      strict: true,
    });
    return entries.flatMap((entry) => entry.values);
  };
  await alter({ key, value: 5_000_000, remove: false });
  await until('it is set', async () => (await values()).length === 1);
  assert.deepEqual(await values(), [{ key, value: 5_000_000 }]);
  await alter({ key, remove: true });
  await until('it is gone', async () => (await values()).length === 0);
});
