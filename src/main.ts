import { createRequire } from 'node:module';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { exitStatus } from './cli/exit-status.ts';
import type { SettingFlag } from './config/sources.ts';
import { BrokerError } from './core/errors.ts';

/** The command line. What a command needs is loaded when it is called: starting is quick. */

const manifest = createRequire(import.meta.url)('../../package.json') as { version: string };

interface StartFlags {
  readonly listen?: string;
  readonly advertise?: string;
  readonly data?: string;
  readonly config?: string;
  readonly keyed?: readonly string[];
  readonly keyedAck?: string;
  readonly nodeId?: string;
  readonly cluster?: string;
  readonly set?: readonly SettingFlag[];
}

interface GroupsFlags {
  readonly admin?: string;
  readonly json?: boolean;
  readonly export?: boolean;
  readonly tenant?: string;
}

const exitStatusHelp = `
Exit status:
  0  done, or stopped by SIGTERM or SIGINT
  1  failure: data folder, address, disk, or the broker itself; check found damage
  2  a setting or the command line is wrong
`;

const adminSecretHelp = "\nThe broker's admin.secret is read from KEYLANE_ADMIN_SECRET.";
const secretHelp = '\nThe secret of the cluster is read from KEYLANE_CLUSTER_SECRET.';

function commandLine(): Command {
  const program = new Command('keylane')
    .description('A message broker that speaks the Kafka wire protocol')
    .version(manifest.version)
    .exitOverride()
    .addHelpText('after', exitStatusHelp);
  program
    .command('start')
    .description('run a broker until SIGTERM or SIGINT')
    .option('--listen <host:port>', 'address to listen on; port 0 takes any free one')
    .option('--advertise <host:port>', 'address that clients are told')
    .option('--data <dir>', 'folder of the data')
    .option('--node-id <number>', 'id of this node in its cluster')
    .option('--cluster <nodes>', 'all nodes of the cluster: ID@HOST:PORT, with commas between')
    .option('--config <file>', 'settings file: one JSON object')
    .option(
      '--keyed <pattern>',
      'topics in keyed delivery, such as "chat-*"; may be repeated',
      collect,
    )
    .option('--keyed-ack <commit|poll>', 'what finishes records in keyed delivery')
    .option('--set <name=value>', 'any setting; may be repeated', collectSetting)
    .addHelpText('after', '\nFlags override KEYLANE_* variables, which override the file.')
    .action(startBroker);
  program
    .command('groups')
    .description('show the consumer groups of a running broker, or one of them in detail')
    .argument('[name]', 'a group')
    .option('--admin <host:port>', "the broker's admin.listen")
    .option('--json', 'as JSON')
    .option('--export', 'all that the journal knows of the group, as JSON')
    .option('--tenant <name>', 'groups of this tenant instead of the default one')
    .action(showGroups);
  addTenants(program);
  addCluster(program);
  program
    .command('check')
    .description('read a data folder that no broker has open, and say whether it is sound')
    .requiredOption('--data <dir>', 'folder of the data')
    .action(checkData);
  program
    .command('settings')
    .description('list all settings with their defaults')
    .action(listSettings);
  return program;
}

function addCluster(program: Command): void {
  const cluster = program.command('cluster').description('look at a cluster, and change it');
  cluster
    .command('add')
    .description("let a node join that is not in the others' cluster.nodes")
    .argument('<node>', 'ID@HOST:PORT, where the other nodes reach it')
    .option('--cluster <nodes>', 'where the nodes are: ID@HOST:PORT, with commas between')
    .addHelpText('after', secretHelp)
    .action(addToCluster);
  cluster
    .command('remove')
    .description('put a node out for good, such as one that has lost its disk')
    .argument('<node-id>', 'which one')
    .option('--cluster <nodes>', 'where the nodes are: ID@HOST:PORT, with commas between')
    .addHelpText('after', secretHelp)
    .action(removeFromCluster);
  cluster
    .command('recover')
    .description('go on with one node when most of the others are lost for good')
    .requiredOption('--data <dir>', 'folder of its data; no broker may have it open')
    .option('--accept-data-loss', 'what only the lost nodes had is lost')
    .action(recoverCluster);
  cluster
    .command('status')
    .description('its members, which one leads, and how far each is')
    .option('--admin <host:port>', "the broker's admin.listen")
    .option('--json', 'as JSON')
    .action(showCluster);
}

function addTenants(program: Command): void {
  const tenants = program
    .command('tenants')
    .description('list the tenants of a running broker, and create or delete one')
    .option('--admin <host:port>', "the broker's admin.listen")
    .option('--json', 'as JSON')
    .action(listTenants);
  tenants
    .command('create')
    .description('a new world of topics and groups, on a port of its own')
    .argument('<name>', 'lower case letters, digits and - within')
    .option('--admin <host:port>', "the broker's admin.listen")
    .addHelpText('after', adminSecretHelp)
    .action(makeTenant);
  tenants
    .command('delete')
    .description('delete a tenant with all that it has')
    .argument('<name>', 'which one')
    .option('--accept-data-loss', 'its topics, groups and all that they hold are lost')
    .option('--admin <host:port>', "the broker's admin.listen")
    .addHelpText('after', adminSecretHelp)
    .action(dropTenant);
}

function collectSetting(text: string, earlier: readonly SettingFlag[] = []): SettingFlag[] {
  const equals = text.indexOf('=');
  if (equals <= 0) throw new InvalidArgumentError('It must be NAME=VALUE.');
  const name = text.slice(0, equals);
  return [...earlier, { flag: `--set ${name}`, name, text: text.slice(equals + 1) }];
}

function collect(text: string, earlier: readonly string[] = []): string[] {
  return [...earlier, text];
}

async function startBroker({
  config,
  set = [],
  keyed,
  keyedAck,
  nodeId,
  cluster,
  ...named
}: StartFlags): Promise<void> {
  const flags = [...set];
  if (keyed !== undefined) {
    flags.push({ flag: '--keyed', name: 'keyed.topics', text: keyed.join(',') });
  }
  if (keyedAck !== undefined) {
    flags.push({ flag: '--keyed-ack', name: 'delivery.ack', text: keyedAck });
  }
  if (nodeId !== undefined) flags.push({ flag: '--node-id', name: 'node.id', text: nodeId });
  if (cluster !== undefined) {
    flags.push({ flag: '--cluster', name: 'cluster.nodes', text: cluster });
  }
  for (const name of ['listen', 'advertise', 'data'] as const) {
    const text = named[name];
    if (text !== undefined) flags.push({ flag: `--${name}`, name, text });
  }
  const { start } = await import('./cli/start.ts');
  await start({ config, flags, version: manifest.version });
}

async function checkData({ data }: { readonly data: string }): Promise<void> {
  const { check } = await import('./cli/check.ts');
  const isSound = await check(data, linePrinter());
  if (!isSound) process.exitCode = exitStatus.failure;
}

async function showGroups(groupId: string | undefined, flags: GroupsFlags): Promise<void> {
  const { groups } = await import('./cli/groups.ts');
  const { admin, tenant, json = false, export: isExport = false } = flags;
  await groups({ groupId, admin, tenant, json, export: isExport }, textPrinter());
}

async function listTenants({ admin, json = false }: GroupsFlags): Promise<void> {
  const { tenants } = await import('./cli/tenants.ts');
  await tenants({ admin, json }, textPrinter());
}

async function makeTenant(name: string, _flags: GroupsFlags, command: Command): Promise<void> {
  const { createTenant } = await import('./cli/tenants.ts');
  const { admin } = command.optsWithGlobals<GroupsFlags>();
  await createTenant(name, { admin }, textPrinter());
}

async function dropTenant(name: string, _flags: GroupsFlags, command: Command): Promise<void> {
  const { deleteTenant } = await import('./cli/tenants.ts');
  const flags = command.optsWithGlobals<GroupsFlags & { readonly acceptDataLoss?: boolean }>();
  const { admin, acceptDataLoss: acceptsDataLoss = false } = flags;
  await deleteTenant(name, { admin, acceptsDataLoss }, textPrinter());
}

async function addToCluster(node: string, { cluster }: Pick<StartFlags, 'cluster'>): Promise<void> {
  const { clusterAdd } = await import('./cli/cluster.ts');
  await clusterAdd(node, { cluster }, textPrinter());
}

async function removeFromCluster(
  nodeId: string,
  { cluster }: Pick<StartFlags, 'cluster'>,
): Promise<void> {
  const { clusterRemove } = await import('./cli/cluster.ts');
  await clusterRemove(nodeId, { cluster }, textPrinter());
}

async function recoverCluster({
  data,
  acceptDataLoss = false,
}: {
  readonly data: string;
  readonly acceptDataLoss?: boolean;
}): Promise<void> {
  const { clusterRecover } = await import('./cli/cluster-recover.ts');
  await clusterRecover({ data, acceptsDataLoss: acceptDataLoss }, textPrinter());
}

async function showCluster({ admin, json = false }: GroupsFlags): Promise<void> {
  const { clusterStatus } = await import('./cli/cluster.ts');
  await clusterStatus({ admin, json }, textPrinter());
}

async function listSettings(): Promise<void> {
  const { settingsList } = await import('./cli/settings-list.ts');
  linePrinter()(settingsList());
}

function textPrinter(): (text: string) => void {
  // A reader such as `head` may leave before the end.
  process.stdout.on('error', () => undefined);
  return (text) => void process.stdout.write(text);
}

function linePrinter(): (line: string) => void {
  const print = textPrinter();
  return (line) => print(`${line}\n`);
}

/** Errors that say themselves what is wrong; all others end the process with their stack. */
function explainAndExit(error: unknown): void {
  if (error instanceof CommanderError) {
    // It has printed its message; asking for help or the version is no error.
    process.exitCode = error.exitCode === 0 ? exitStatus.ok : exitStatus.usage;
  } else if (error instanceof BrokerError) {
    process.stderr.write(`keylane: ${error.message}\n`);
    const isUsage = error.code === 'CONFIG_INVALID';
    process.exitCode = isUsage ? exitStatus.usage : exitStatus.failure;
  } else {
    throw error;
  }
}

await commandLine().parseAsync().catch(explainAndExit);
