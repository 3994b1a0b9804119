import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadSettings, type SettingsSources } from '../../src/config/load.ts';
import { withDefaults } from '../../src/config/settings.ts';
import { BrokerError } from '../../src/core/errors.ts';

const nothing: SettingsSources = { environment: {}, flags: [] };

function file(content: unknown): SettingsSources['file'] {
  return { path: 'keylane.json', text: JSON.stringify(content) };
}

function setFlag(name: string, text: string) {
  return { flag: `--set ${name}`, name, text };
}

/** The problems that a load ends with. */
function problemsOf(sources: Partial<SettingsSources>): readonly string[] {
  try {
    loadSettings({ ...nothing, ...sources });
  } catch (error) {
    assert(error instanceof BrokerError);
    assert.equal(error.code, 'CONFIG_INVALID');
    const problems = error.fields['problems'] as string[];
    for (const problem of problems) assert(error.message.includes(problem));
    return problems;
  }
  return [];
}

describe('what takes effect', () => {
  test('without any source, everything has its default', () => {
    assert.deepEqual(loadSettings(nothing), withDefaults());
  });

  test('flags override the environment, which overrides the file', () => {
    const settings = loadSettings({
      file: file({ 'num.partitions': 2, 'node.id': 3, 'auto.create.topics.enable': false }),
      environment: { KEYLANE_NUM_PARTITIONS: '4', KEYLANE_LOG_LEVEL: 'warn', PATH: '/bin' },
      flags: [setFlag('num.partitions', '5')],
    });
    assert.equal(settings['num.partitions'], 5);
    assert.equal(settings['log.level'], 'warn');
    assert.equal(settings['node.id'], 3);
    assert.equal(settings['auto.create.topics.enable'], false);
  });

  test('keyed delivery is set like everything else', () => {
    const settings = loadSettings({
      file: file({ 'delivery.mode': 'keyed', 'lease.ms': 0 }),
      environment: { KEYLANE_KEYED_TOPICS: 'a, b-*', KEYLANE_DEAD_LETTER_TOPIC: '' },
      flags: [{ flag: '--keyed-ack', name: 'delivery.ack', text: 'poll' }],
    });
    assert.equal(settings['delivery.mode'], 'keyed');
    assert.equal(settings['lease.ms'], 0);
    assert.equal(settings['keyed.topics'], 'a, b-*');
    assert.equal(settings['dead.letter.topic'], '');
    assert.equal(settings['delivery.ack'], 'poll');
  });

  test('text becomes a number or a boolean where it is exactly one', () => {
    const settings = loadSettings({
      ...nothing,
      environment: {
        KEYLANE_LOG_RETENTION_BYTES: '-1',
        KEYLANE_AUTO_CREATE_TOPICS_ENABLE: 'false',
        KEYLANE_LOG_RETENTION_MS: '9007199254740991',
        KEYLANE_ADVERTISE: '',
      },
    });
    assert.equal(settings['log.retention.bytes'], -1);
    assert.equal(settings['auto.create.topics.enable'], false);
    assert.equal(settings['log.retention.ms'], Number.MAX_SAFE_INTEGER);
    assert.equal(settings.advertise, '');
  });
});

describe('wrong values', () => {
  test('a message names the place, the value and what is allowed', () => {
    assert.deepEqual(problemsOf({ file: file({ 'num.partitions': 0 }) }), [
      'keylane.json: /num.partitions: 0 is not allowed; allowed: an integer from 1 to 1000000',
    ]);
    assert.deepEqual(problemsOf({ environment: { KEYLANE_NUM_PARTITIONS: '1e3' } }), [
      'KEYLANE_NUM_PARTITIONS: "1e3" is not allowed; allowed: an integer from 1 to 1000000',
    ]);
    assert.deepEqual(problemsOf({ flags: [setFlag('auto.create.topics.enable', 'yes')] }), [
      '--set auto.create.topics.enable: "yes" is not allowed; allowed: true or false',
    ]);
  });

  for (const text of ['', ' 5', '5 ', '+5', '0x5', '5.0', '1_000', '９', '99999999999999999999']) {
    test(`"${text}" is no integer`, () => {
      assert.equal(problemsOf({ environment: { KEYLANE_NUM_PARTITIONS: text } }).length, 1);
    });
  }

  for (const value of ['3', 3.5, null, true, [3], { n: 3 }]) {
    test(`${JSON.stringify(value)} in a file is no integer`, () => {
      assert.equal(problemsOf({ file: file({ 'num.partitions': value }) }).length, 1);
    });
  }

  test('a misspelt value of a list gets a suggestion', () => {
    const [problem] = problemsOf({ environment: { KEYLANE_LOG_LEVEL: 'wran' } });
    assert.match(problem!, /allowed: trace, debug, .*; did you mean warn\?$/);
  });

  test('all problems of all sources are listed at once', () => {
    const problems = problemsOf({
      file: file({ 'num.partitions': 'x', nonsense: 1, 'node.id': -1 }),
      environment: { KEYLANE_LOG_LEVEL: 'loud', KEYLANE_NUM_PARTITION: '1' },
      flags: [setFlag('journal.sync', 'never')],
    });
    assert.equal(problems.length, 6);
  });

  test('a wrong value is wrong even where it is overridden', () => {
    const problems = problemsOf({
      file: file({ 'num.partitions': 0 }),
      environment: {},
      flags: [setFlag('num.partitions', '4')],
    });
    assert.equal(problems.length, 1);
  });

  test('bounds that contradict each other are refused', () => {
    const problems = problemsOf({
      environment: { KEYLANE_GROUP_MIN_SESSION_TIMEOUT_MS: '1800001' },
    });
    assert.deepEqual(problems, [
      'KEYLANE_GROUP_MIN_SESSION_TIMEOUT_MS: group.min.session.timeout.ms (1800001) may not be ' +
        'above group.max.session.timeout.ms (1800000)',
    ]);
  });

  test('a setting that two flags give is refused', () => {
    const flags = [
      setFlag('listen', '127.0.0.1:1'),
      { flag: '--listen', name: 'listen', text: '127.0.0.1:2' },
    ];
    assert.deepEqual(problemsOf({ flags }), ['--listen: given twice (--set listen)']);
  });
});

describe('unknown settings', () => {
  test('a near miss gets a suggestion', () => {
    assert.deepEqual(problemsOf({ file: file({ 'num.partition': 1 }) }), [
      'keylane.json: /num.partition: unknown setting; did you mean num.partitions?',
    ]);
    assert.deepEqual(problemsOf({ environment: { KEYLANE_NODEID: '1' } }), [
      'KEYLANE_NODEID: unknown setting; did you mean KEYLANE_NODE_ID?',
    ]);
  });

  test('a name of Kafka leads to the name here', () => {
    assert.deepEqual(problemsOf({ flags: [setFlag('log.dirs', '/data')] }), [
      '--set log.dirs: unknown setting; did you mean data?',
    ]);
    assert.deepEqual(problemsOf({ flags: [setFlag('retention.ms', '1')] }), [
      '--set retention.ms: unknown setting; did you mean log.retention.ms?',
    ]);
  });

  test('nothing is suggested for nonsense', () => {
    assert.deepEqual(problemsOf({ file: file({ 'a/b~c': 1 }) }), [
      'keylane.json: /a~1b~0c: unknown setting',
    ]);
  });

  test('a variable that Kubernetes adds says where it comes from', () => {
    const [problem] = problemsOf({ environment: { KEYLANE_PORT_9092_TCP_ADDR: '10.0.0.1' } });
    assert.match(problem!, /Kubernetes/);
  });

  test('names of the JavaScript prototype are unknown, not special', () => {
    const text = '{"__proto__": {"num.partitions": 7}, "constructor": 1, "toString": 2}';
    assert.equal(problemsOf({ file: { path: 'keylane.json', text } }).length, 3);
  });
});

describe('settings files', () => {
  test('what is not JSON is refused with line and column', () => {
    const text = '{\n  "node.id": 1,\n  oops\n}';
    const [problem] = problemsOf({ file: { path: 'keylane.json', text } });
    assert.match(problem!, /^keylane\.json: is not JSON: .*line 3 column 3/);
  });

  for (const text of ['', '[]', 'null', '3', '"text"']) {
    test(`${text === '' ? 'an empty file' : text} is refused`, () => {
      assert.equal(problemsOf({ file: { path: 'keylane.json', text } }).length, 1);
    });
  }

  test('a long value is cut in the message', () => {
    const [problem] = problemsOf({ file: file({ 'node.id': 'x'.repeat(10_000) }) });
    assert(problem!.length < 400);
  });
});
