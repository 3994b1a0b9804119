import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  advertisedFor,
  formatHostPort,
  type HostPort,
  isWildcard,
  type ListenerSettings,
  parseHostPort,
  plainAddress,
} from '../../src/net/listeners.ts';

test('HOST:PORT is parsed', () => {
  const table: readonly (readonly [string, HostPort])[] = [
    ['localhost:9092', { host: 'localhost', port: 9092 }],
    ['10.1.2.3:1', { host: '10.1.2.3', port: 1 }],
    ['0.0.0.0:0', { host: '0.0.0.0', port: 0 }],
    [':65535', { host: '', port: 65535 }],
    ['[::1]:9092', { host: '::1', port: 9092 }],
    ['[::]:9092', { host: '::', port: 9092 }],
    ['[fe80::1%eth0]:9092', { host: 'fe80::1%eth0', port: 9092 }],
    ['a-b.example.com:80', { host: 'a-b.example.com', port: 80 }],
  ];
  for (const [text, expected] of table) assert.deepEqual(parseHostPort(text), expected, text);
});

test('what is not HOST:PORT is refused with the text in the message', () => {
  const wrong = ['', 'host', 'host:', '9092', 'host:x', 'host:65536', 'host:123456', '::1:9092'];
  wrong.push('[::1]', '[::1]9092', '[host]:9092', '[]:9092', 'a b:9092', 'host:-1', '[::1:9092');
  for (const text of wrong) {
    assert.throws(
      () => parseHostPort(text),
      (error) => error instanceof RangeError && error.message.includes(text),
      text,
    );
  }
});

test('what is formatted is parsed back', () => {
  for (const text of ['localhost:9092', '[::1]:9092', ':0']) {
    assert.equal(formatHostPort(parseHostPort(text)), text);
  }
});

test('wildcards are told from addresses', () => {
  const wild = ['', '0.0.0.0', '::', '0:0:0:0:0:0:0:0'];
  for (const host of wild) assert(isWildcard(host), host);
  for (const host of ['0', '127.0.0.1', '::1', '::2:0', 'localhost']) {
    assert(!isWildcard(host), host);
  }
});

test('IPv4 addresses that came over IPv6 are made plain', () => {
  assert.equal(plainAddress('::ffff:10.0.0.1'), '10.0.0.1');
  assert.equal(plainAddress('::FFFF:10.0.0.1'), '10.0.0.1');
  assert.equal(plainAddress('10.0.0.1'), '10.0.0.1');
  assert.equal(plainAddress('fe80::1'), 'fe80::1');
  assert.equal(plainAddress('::ffff:abcd'), '::ffff:abcd');
  assert.equal(plainAddress(''), '');
});

test('clients are told where they can reach the listener', () => {
  const at = parseHostPort;
  const table: readonly (readonly [string, ListenerSettings, string])[] = [
    ['a fixed host is told as it is', { listen: at('broker-1:9092') }, 'broker-1:9092'],
    ['a fixed host with any port', { listen: at('127.0.0.1:0') }, '127.0.0.1:9092'],
    ['a wildcard tells the client its way in', { listen: at('0.0.0.0:9092') }, '10.0.0.7:9092'],
    ['an empty host too', { listen: at(':0') }, '10.0.0.7:9092'],
    ['and the IPv6 wildcard', { listen: at('[::]:9092') }, '10.0.0.7:9092'],
    [
      'a setting wins',
      { listen: at('0.0.0.0:9092'), advertise: at('kafka.example.com:19092') },
      'kafka.example.com:19092',
    ],
    [
      'a setting without a port takes the port of the connection',
      { listen: at('0.0.0.0:0'), advertise: at('kafka.example.com:0') },
      'kafka.example.com:9092',
    ],
    [
      'a setting without a host only changes the port',
      { listen: at('0.0.0.0:9092'), advertise: at(':19092') },
      '10.0.0.7:19092',
    ],
    [
      'and keeps a fixed host',
      { listen: at('broker-1:9092'), advertise: at('0.0.0.0:19092') },
      'broker-1:19092',
    ],
  ];
  for (const [name, settings, expected] of table) {
    const told = advertisedFor('::ffff:10.0.0.7', 9092, settings);
    assert.equal(formatHostPort(told), expected, name);
  }
  const wild = { listen: at('[::]:9092') };
  assert.equal(formatHostPort(advertisedFor('fd00::7', 9092, wild)), '[fd00::7]:9092');
});
