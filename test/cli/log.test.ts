import assert from 'node:assert/strict';
import { test } from 'node:test';
import { banner } from '../../src/cli/banner.ts';
import { terminalLine } from '../../src/cli/log.ts';

const at = new Date(2026, 0, 2, 3, 4, 5);

test('a line for people has time, level, message and fields', () => {
  const fields = { file: '0001.log', count: 3, words: 'two words', list: [1], big: 5n, none: '' };
  const expected =
    '03:04:05 warn  cut file=0001.log count=3 words="two words" list=[1] big=5 none=""';
  assert.equal(terminalLine('warn', fields, 'cut', at), expected);
});

test('errors are shown with their stacks, below the line', () => {
  const lines = terminalLine('fatal', { err: new Error('boom'), n: 1 }, 'end', at).split('\n');
  assert.equal(lines[0], '03:04:05 fatal end n=1');
  assert.equal(lines[1], 'Error: boom');
  assert.match(lines[2]!, /^ +at /);
});

test('the banner names an address that clients can use', () => {
  const adminAddress = { host: '::1', port: 9644 };
  const facts = { version: '1.2.3', adminAddress, data: '/data', nodeId: 0, pid: 7, startMs: 90 };
  const cases = [
    ['127.0.0.1', '', '127.0.0.1:9092'],
    ['0.0.0.0', '', 'localhost:9092'],
    ['', '', 'localhost:9092'],
    ['::', '', 'localhost:9092'],
    ['::1', '', '[::1]:9092'],
    ['0.0.0.0', 'kafka.example:19092', 'kafka.example:19092'],
    ['0.0.0.0', 'kafka.example:0', 'kafka.example:9092'],
    ['0.0.0.0', ':19092', 'localhost:19092'],
  ] as const;
  for (const [host, advertise, expected] of cases) {
    const text = banner({ ...facts, address: { host, port: 9092 }, advertise });
    assert(text.includes(`bootstrap.servers=${expected}\n`), text);
    assert(text.includes('http://[::1]:9644\n'), text);
  }
});
