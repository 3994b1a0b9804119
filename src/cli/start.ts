import { promises as fsp } from 'node:fs';
import { resolve } from 'node:path';
import { invalidSettings, loadSettings } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import type { SettingFlag, SettingsFile } from '../config/sources.ts';
import { systemClock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import { systemRandom } from '../core/random.ts';
import { nodeFiles } from '../log/node-files.ts';
import { formatHostPort } from '../net/listeners.ts';
import { type NodeOptions, type RunningNode, startNode } from '../node.ts';
import { banner } from './banner.ts';
import { lockDataFolder } from './data-lock.ts';
import { decideFounder, openDataMeta } from './data-meta.ts';
import { exitStatus } from './exit-status.ts';
import { createLog, type LogLevel, type ProcessLog } from './log.ts';

export interface StartOptions {
  /** Path of the settings file. */
  readonly config: string | undefined;
  readonly flags: readonly SettingFlag[];
  readonly version: string;
}

/** Longer than the node gives requests in flight; after that a stop counts as failed. */
const stopMsMax = 20_000;

/** `keylane start`: one broker process, from its settings to its end. Settles when it is ready. */
export async function start({ config, flags, version }: StartOptions): Promise<void> {
  const file = config === undefined ? undefined : await readSettingsFile(config);
  const loaded = loadSettings({ file, environment: process.env, flags });
  const settings = { ...loaded, data: resolve(loaded.data) };
  const log = createLog(settings['log.level'] as LogLevel);
  const fatal = endOnFatal(log);
  // Timers of the clock do not keep the process alive, nor does anything else while it starts.
  setInterval(() => undefined, 2 ** 30);
  const runs = new NodeRuns(log, fatal);
  let closeLock = (): Promise<void> => Promise.resolve();
  stopOnSignals(log, fatal, async () => {
    await runs.stop();
    await closeLock();
  });
  try {
    await makeDataFolder(settings.data);
    const lock = await lockDataFolder(settings.data);
    closeLock = lock.release;
    const meta = await openDataMeta(nodeFiles, settings.data, settings['node.id']);
    const node = await runs.start({
      settings,
      log,
      clock: systemClock,
      random: systemRandom,
      files: nodeFiles,
      directoryId: meta.directoryId,
      isFounder: meta.isFounder,
      onDecided: (isFounder) => decideFounder(nodeFiles, settings.data, meta, isFounder),
      onFatal: fatal,
    });
    reportReady(log, settings, node, version);
  } catch (error) {
    // What outside of this process is wrong needs no stack: the message says it.
    if (!(error instanceof BrokerError)) return fatal(error);
    log.fatal({ code: error.code, ...error.fields }, error.message);
    process.exit(error.code === 'CONFIG_INVALID' ? exitStatus.usage : exitStatus.failure);
  }
}

/** The node of this process: one after the other, when it has to begin anew with a snapshot. */
class NodeRuns {
  readonly #log: ProcessLog;
  readonly #fatal: (error: unknown) => never;
  #node: RunningNode | undefined;
  #restarting: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(log: ProcessLog, fatal: (error: unknown) => never) {
    this.#log = log;
    this.#fatal = fatal;
  }

  async start(options: Omit<NodeOptions, 'onSnapshotFetched'>): Promise<RunningNode> {
    const onSnapshotFetched = (): void => {
      this.#restarting = this.#restart(options).catch(this.#fatal);
    };
    this.#node = await startNode({ ...options, onSnapshotFetched });
    return this.#node;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#restarting;
    await this.#node?.stop();
  }

  async #restart(options: Omit<NodeOptions, 'onSnapshotFetched'>): Promise<void> {
    if (this.#isStopped) return;
    this.#log.info({}, 'starting anew with the snapshot');
    await this.#node?.stop();
    this.#node = undefined;
    if (this.#isStopped) return;
    // By then it belongs to a cluster for good.
    await this.start({ ...options, isFounder: options.isFounder ?? false });
    this.#log.info({}, 'started with the snapshot');
  }
}

/** Any error that nobody foresaw: one line, and the end. The next start recovers. */
function endOnFatal(log: ProcessLog): (error: unknown) => never {
  const fatal = (error: unknown): never => {
    try {
      const err = error instanceof Error ? error : new Error(String(error));
      log.fatal({ err }, `fatal: ${err.message}`);
    } finally {
      process.exit(exitStatus.failure);
    }
  };
  process.on('uncaughtException', fatal);
  process.on('unhandledRejection', fatal);
  return fatal;
}

function stopOnSignals(
  log: ProcessLog,
  fatal: (error: unknown) => never,
  stop: () => Promise<void>,
): void {
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) {
      log.fatal({ signal }, 'stopped at once by a second signal');
      process.exit(exitStatus.failure);
    }
    isStopping = true;
    log.info({ signal }, 'stopping');
    systemClock.after(stopMsMax, () => fatal(new Error(`not stopped after ${stopMsMax} ms`)));
    stop().then(() => {
      log.info({}, 'stopped');
      process.exit(exitStatus.ok);
    }, fatal);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

function reportReady(
  log: ProcessLog,
  settings: Settings,
  { address, adminAddress }: RunningNode,
  version: string,
): void {
  const nodeId = settings['node.id'];
  // The monotonic clock begins with the process.
  const startMs = Math.round(systemClock.monotonicMs());
  if (log.isTerminal) {
    const { advertise, data } = settings;
    const facts = { version, address, adminAddress, advertise, data, nodeId };
    process.stdout.write(banner({ ...facts, pid: process.pid, startMs }));
    return;
  }
  const admin = adminAddress === undefined ? undefined : formatHostPort(adminAddress);
  const facts = { address: formatHostPort(address), nodeId, version, startMs, pid: process.pid };
  log.info({ ...facts, ...(admin !== undefined && { admin }) }, 'ready');
}

async function readSettingsFile(path: string): Promise<SettingsFile> {
  try {
    return { path, text: await fsp.readFile(path, 'utf8') };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalidSettings([`--config ${path}: cannot be read: ${reason}`]);
  }
}

async function makeDataFolder(folder: string): Promise<void> {
  try {
    await nodeFiles.makeFolder(folder);
    await fsp.access(folder, fsp.constants.R_OK | fsp.constants.W_OK | fsp.constants.X_OK);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `the data folder ${folder} cannot be used: ${reason}`;
    throw new BrokerError('DATA_DIR_UNUSABLE', message, { folder }, error);
  }
}
