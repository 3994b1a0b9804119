/** What the tidy rules allow, as data. ARCHITECTURE.md says why the layers are as they are. */

export type Layer =
  | 'core'
  | 'config'
  | 'protocol'
  | 'log'
  | 'raft'
  | 'state'
  | 'groups'
  | 'net'
  | 'replica'
  | 'cluster'
  | 'broker'
  | 'cli'
  | 'root';

const everything: readonly Layer[] = [
  ...(['core', 'config', 'protocol', 'log', 'raft', 'state', 'groups', 'net'] as const),
  ...(['replica', 'cluster', 'broker', 'cli', 'root'] as const),
];

/** The layers that each layer may import, besides itself. `root` is src/main.ts and src/node.ts. */
export const allowedImports: Readonly<Record<Layer, readonly Layer[]>> = {
  core: [],
  config: ['core'],
  protocol: ['core'],
  log: ['core', 'config', 'protocol'],
  raft: ['core'],
  state: ['core', 'protocol'],
  groups: ['core', 'protocol', 'state'],
  net: ['core'],
  replica: ['core', 'config', 'protocol', 'log', 'raft', 'state', 'groups'],
  cluster: ['core', 'config', 'log', 'raft', 'state', 'net', 'replica'],
  broker: [
    ...(['core', 'config', 'protocol', 'log', 'raft', 'state', 'groups', 'net'] as const),
    ...(['replica', 'cluster'] as const),
  ],
  cli: everything,
  root: everything,
};

/** Files outside core, net, cli and root that may import `node:` modules. */
export const filesWithNodeModules: Readonly<Record<string, string>> = {
  'src/log/node-files.ts': 'the file port of the real system',
  'src/log/read-thread.ts': 'the thread of its small reads',
  'src/log/read-worker.ts': 'what runs in that thread',
  'src/replica/job-thread.ts': 'the thread for what would hold up the event loop',
  'src/replica/job-worker.ts': 'what runs in that thread',
  'src/broker/35-describe-log-dirs.ts': 'answers an absolute path',
};
export const layersWithNodeModules: readonly Layer[] = ['core', 'net', 'cli', 'root'];

/** Layers that run the same everywhere, every time: no time, chance, machine, or waiting. */
export const pureLayers: readonly Layer[] = ['protocol', 'raft', 'state', 'groups'];
export const impureWords: readonly string[] = [
  ...['Date', 'performance', 'process', 'console', 'setTimeout', 'setInterval', 'setImmediate'],
  ...['queueMicrotask', 'Math.random', 'crypto', 'async', 'await', 'Promise'],
];

/**
 * Files, and folders with a slash at the end, that only tests reach so far, each with the reason.
 * The entry of a file that the program reaches is itself a problem.
 */
export const filesAhead: Readonly<Record<string, string>> = {
  'src/protocol/schema/': 'tables are checked against Kafka before anything is built on them',
  'src/protocol/registry.ts': 'the list of all tables, which the tests of the codec go through',
  'src/protocol/records/control-record.ts': 'for transactions',
  'src/protocol/records/decode.ts': 'the plain reader that tests compare with',
  'src/protocol/records/decoded-batch.ts': 'what decode.ts answers',
  'src/protocol/records/legacy.ts': 'part of decode.ts',
};

/** Files of more than 500 lines, each with the reason. */
export const longFiles: Readonly<Record<string, string>> = {
  'src/log/journal.ts':
    'one log: what is written, rolled, rewound and read share its end and files',
  'src/raft/raft.ts': 'one state machine: what each role does with each message, time and disk',
  'test/groups/keyed/world.ts': 'one world: all that may happen in it and all that must hold',
};

/** Functions of more than 70 lines, as `file:name`, each with the reason. */
export const longFunctions: Readonly<Record<string, string>> = {};

export const columnsMax = 100;
export const fileLinesMax = 500;
export const functionLinesMax = 70;
