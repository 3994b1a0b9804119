import { playScripts } from '../../play-scripts.ts';
import { World } from './world.ts';

playScripts('classic group script', 'groups/classic/testdata', () => {
  const world = new World();
  return (commands) => {
    world.out = [];
    for (const command of commands) play(world, command);
    return world.out;
  };
});

function play(world: World, line: string): void {
  const [command, ...words] = line.split(' ');
  const args = new Map<string, string>();
  const names: string[] = [];
  for (const word of words) {
    const at = word.indexOf('=');
    if (at < 0) names.push(word);
    else args.set(word.slice(0, at), word.slice(at + 1));
  }
  world.run(command!, names, args);
}
