import { playScripts } from '../play-scripts.ts';
import { ScriptedCluster } from './script.ts';

playScripts('raft script', 'raft/testdata', () => {
  const cluster = new ScriptedCluster();
  return (commands) => cluster.run(commands);
});
