import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run, startBroker, temporaryFolder } from './support.ts';

const secret = 'the secret of operators';

test('tenants are created, listed, looked into, checked and deleted from the command line', async (t) => {
  const data = temporaryFolder(t);
  const environment = { KEYLANE_ADMIN_SECRET: secret, KEYLANE_TENANT_PORT_BASE: '0' };
  const broker = await startBroker(t, data, [], { environment, admin: '127.0.0.1:0' });
  const { admin } = broker.address;
  const keylane = (args: readonly string[], more: NodeJS.ProcessEnv = environment) =>
    run(t, [...args, '--admin', admin!], { environment: more });
  const created = await keylane(['tenants', 'create', 'acme']);
  assert.equal(created.code, 0, created.output);
  const listed = await keylane(['tenants']);
  assert.match(listed.output, /^default +0 +127\.0\.0\.1:\d+ +0 /m);
  assert.match(listed.output, /^acme +1 +127\.0\.0\.1:\d+ +0 /m);
  assert.match((await keylane(['groups', '--tenant', 'acme'])).output, /^no groups$/m);
  assert.match((await keylane(['groups', '--tenant', 'blue'])).output, /serves no tenant blue/);
  assert.match((await keylane(['tenants', 'create', 'acme'])).output, /there is a tenant acme/);
  const unknown = await keylane(['tenants', 'create', 'blue'], { KEYLANE_ADMIN_SECRET: '' });
  assert.equal(unknown.code, 2, unknown.output);
  const unasked = await keylane(['tenants', 'delete', 'acme']);
  assert.equal(unasked.code, 2);
  assert.match(unasked.output, /--accept-data-loss/);
  await keylane(['tenants', 'create', 'blue']);
  const deleted = await keylane(['tenants', 'delete', 'acme', '--accept-data-loss']);
  assert.equal(deleted.code, 0, deleted.output);
  const left = await keylane(['tenants', '--json']);
  const names = (JSON.parse(left.output) as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(names, ['default', 'blue']);
  await broker.stop();
  const checked = await run(t, ['check', '--data', data]);
  assert.equal(checked.code, 0, checked.output);
  assert.match(checked.output, /^tenant 2$/m);
});
