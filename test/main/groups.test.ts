import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import { commit } from '../broker/group-client.ts';
import { send } from '../broker/keyed-member.ts';
import { TestClient } from '../broker/support.ts';
import { run, startBroker, temporaryFolder } from './support.ts';

describe('keylane groups', () => {
  test('asks a running broker', async (t) => {
    const broker = await startBroker(t, temporaryFolder(t), [], { admin: '127.0.0.1:0' });
    const { admin, port } = broker.address;
    assert.match(admin!, /^127\.0\.0\.1:\d+$/);
    const ask = (...args: string[]) => run(t, ['groups', ...args, '--admin', admin!]);
    assert.deepEqual(await ask(), { code: 0, signal: null, output: 'no groups' });
    const client = await TestClient.connect({ host: '127.0.0.1', port });
    t.after(() => client.close());
    // Which makes the topic.
    await client.ask(metadataRequest, metadataResponse, 12, {
      topics: [{ name: 'orders', topicId: '00'.repeat(16) }],
    });
    await send(client, 'orders', ['a=1', 'b=1']);
    await commit(client, 'the group', 'orders', 0, 1, { generationIdOrMemberEpoch: -1 });
    const { output } = await ask();
    assert.match(output, /^GROUP +TOPIC +MODE/);
    assert.match(output, /\nthe group +orders +log +0 +1 +1 +-/);
    const one = await ask('the group');
    assert.match(one.output, /^the group: Empty, consumers: 0\n/);
    const json = JSON.parse((await ask('the group', '--json')).output) as { group: string };
    assert.equal(json.group, 'the group');
    const exported = JSON.parse((await ask('the group', '--export')).output) as {
      committedOffsets: { offset: number }[];
    };
    assert.equal(exported.committedOffsets[0]!.offset, 1);
    const unknown = await ask('nobody');
    assert.deepEqual([unknown.code, unknown.output], [1, 'keylane: there is no group nobody']);
  });

  test('says how it went wrong', async (t) => {
    const nobody = await run(t, ['groups', '--admin', '127.0.0.1:1']);
    assert.equal(nobody.code, 1);
    assert.match(
      nobody.output,
      /^keylane: no broker answers at http:\/\/127\.0\.0\.1:1: ECONNREFUSED/,
    );
    const cases: readonly (readonly [string[], NodeJS.ProcessEnv, RegExp])[] = [
      [['--export'], {}, /--export needs the name of a group/],
      [['--admin', 'nowhere'], {}, /--admin: "nowhere" is not HOST:PORT/],
      [[], { KEYLANE_ADMIN_LISTEN: '' }, /no admin endpoint/],
      [['a', 'b'], {}, /too many arguments/],
    ];
    for (const [args, environment, expected] of cases) {
      const { code, output } = await run(t, ['groups', ...args], { environment });
      assert.match(output, expected);
      assert.equal(code, 2);
    }
  });
});

describe('the address of the endpoint for operators', () => {
  test('one in use ends the start, where it was asked for', async (t) => {
    const first = await startBroker(t, temporaryFolder(t), [], { admin: '127.0.0.1:0' });
    const place = ['--listen', '127.0.0.1:0', '--data', temporaryFolder(t)];
    const set = ['--set', `admin.listen=${first.address.admin}`];
    const { code, output } = await run(t, ['start', ...place, ...set]);
    assert.equal(code, 1);
    assert.match(output, /the admin endpoint cannot listen on 127\.0\.0\.1:\d+: EADDRINUSE/);
  });
});
