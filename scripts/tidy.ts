/**
 * House rules that no linter knows: the direction of imports, words that pure layers must not
 * use, dead files, sizes, and what tests must not do. It runs as a test (test/tidy.test.ts).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { codeOnly, functionsOf, type Import, importsOf } from './source-text.ts';
import {
  allowedImports,
  columnsMax,
  fileLinesMax,
  filesAhead,
  filesWithNodeModules,
  functionLinesMax,
  impureWords,
  type Layer,
  layersWithNodeModules,
  longFiles,
  longFunctions,
  pureLayers,
} from './tidy-rules.ts';

export interface SourceFile {
  /** From the root of the project, with slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Tree {
  readonly files: readonly SourceFile[];
  /** Names of the runtime dependencies in package.json. */
  readonly dependencies: readonly string[];
  /** Text of ARCHITECTURE.md. */
  readonly architecture: string;
}

interface Module extends SourceFile {
  readonly code: string;
  readonly imports: readonly Import[];
  /** Only files of src have one. */
  readonly layer: Layer | undefined;
}

const sourceFolders = ['src', 'test', 'bench', 'scripts', 'demo'];

export function readTree(root: string): Tree {
  const files: SourceFile[] = [];
  for (const folder of sourceFolders) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      // Clients of benchmarks have packages of their own.
      if (!name.endsWith('.ts') || name.includes('node_modules')) continue;
      const path = posix.join(folder, name.replaceAll('\\', '/'));
      files.push({ path, text: readFileSync(join(root, path), 'utf8') });
    }
  }
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return {
    files,
    dependencies: Object.keys(manifest.dependencies),
    architecture: readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'),
  };
}

/** Everything that breaks a rule, as `file:line: what`, sorted. */
export function untidy(tree: Tree): string[] {
  const modules = tree.files.map(readModule);
  const problems = [
    ...modules.flatMap(wrongImports),
    ...modules.flatMap(impurities),
    ...modules.flatMap(badSizes),
    ...modules.flatMap(bannedText),
    ...modules.flatMap(badTests),
    ...modules.flatMap(barrels),
    ...cycles(modules),
    ...deadFiles(modules),
    ...dependencyProblems(tree, modules),
  ];
  return problems.sort();
}

function readModule(file: SourceFile): Module {
  const code = codeOnly(file.text);
  return { ...file, code, imports: importsOf(file.text), layer: layerOf(file.path) };
}

function layerOf(path: string): Layer | undefined {
  const [top, folder, ...rest] = path.split('/');
  if (top !== 'src') return undefined;
  return rest.length === 0 ? 'root' : (folder as Layer);
}

/** The file that a relative import means, from the root of the project. */
function target(module: SourceFile, { specifier }: Import): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  return posix.join(dirname(module.path), specifier);
}

function wrongImports(module: Module): string[] {
  const { layer, path } = module;
  if (layer === undefined) return [];
  const allowed: readonly Layer[] | undefined = allowedImports[layer];
  if (allowed === undefined) return [`${path}: the folder is no layer of tidy-rules.ts`];
  const problems: string[] = [];
  for (const imported of module.imports) {
    const file = target(module, imported);
    const to = file === undefined ? undefined : layerOf(file);
    if (file !== undefined && (to === undefined || (to !== layer && !allowed.includes(to)))) {
      problems.push(`${path}: ${layer} may not import ${file}`);
    }
    const mayUseNode = layersWithNodeModules.includes(layer) || path in filesWithNodeModules;
    if (imported.specifier.startsWith('node:') && !mayUseNode) {
      problems.push(`${path}: ${layer} may not import ${imported.specifier}`);
    }
  }
  return problems;
}

function impurities({ path, code, layer }: Module): string[] {
  if (layer === undefined || !pureLayers.includes(layer)) return [];
  return impureWords.flatMap((word) => {
    const pattern = new RegExp(`(?<![\\w.#])${word.replace('.', '\\.')}(?![\\w:])`, 'g');
    return [...code.matchAll(pattern)].map(
      ({ index }) => `${path}:${lineAt(code, index)}: ${layer} may not use ${word}`,
    );
  });
}

function badSizes({ path, text, code, layer }: Module): string[] {
  const problems: string[] = [];
  const lines = text.trimEnd().split('\n');
  for (const [index, line] of lines.entries()) {
    const columns = [...line].length;
    // The formatter cannot break a string: titles and bytes of tests may be long.
    const isLongString = layer === undefined && /(['"`/]).{40,}\1/.test(line);
    if (columns > columnsMax && !isLongString)
      problems.push(`${path}:${index + 1}: ${columns} columns`);
  }
  if (lines.length > fileLinesMax && !(path in longFiles)) {
    problems.push(`${path}: ${lines.length} lines without an entry in longFiles`);
  }
  if (layer === undefined) return problems;
  for (const { name, line, lines: count } of functionsOf(code)) {
    if (count <= functionLinesMax || `${path}:${name}` in longFunctions) continue;
    problems.push(`${path}:${line}: ${name} has ${count} lines`);
  }
  return problems;
}

/** Written in pieces, so that this file does not find itself. */
const banned: readonly (readonly [RegExp, string])[] = [
  [new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|')})\\b`), 'unfinished work'],
  [/(?<![\w.:/])\/(?:work|home|root|Users|tmp)\//, 'a path of some machine'],
];

function bannedText({ path, text }: Module): string[] {
  return banned.flatMap(([pattern, what]) => {
    const index = text.search(pattern);
    return index === -1 ? [] : [`${path}:${lineAt(text, index)}: ${what}`];
  });
}

/** A wait in a test, with the comment that says why it cannot await a condition instead. */
const wait = /timers\/promises|=>\s*(?:void\s+)?setTimeout\(|\bawait (?:sleep|delay|pause)\(/;

function badTests({ path, text, code }: Module): string[] {
  if (!path.startsWith('test/')) return [];
  const problems: string[] = [];
  const disabled =
    /\b(?:test|it|describe|suite|t)\.(?:only|skip|todo)\b|\b(?:only|todo|skip): true/;
  const lines = text.split('\n');
  for (const [index, line] of code.split('\n').entries()) {
    const at = `${path}:${index + 1}`;
    if (disabled.test(line))
      problems.push(`${at}: a test that does not run, or keeps others from it`);
    const isExplained = /^\s*(?:\/\/|\*)/.test(lines[index - 1] ?? '');
    const isWait = wait.test(line) || /timers\/promises/.test(lines[index]!);
    if (isWait && !isExplained) problems.push(`${at}: a wait without a comment that says why`);
  }
  return problems;
}

function barrels({ path, text, imports }: Module): string[] {
  const withoutReExports = codeOnly(text)
    .replace(/^export [^;]*from '[^']*';/gm, '')
    .trim();
  const isBarrel = imports.some(({ isReExport }) => isReExport) && withoutReExports === '';
  return isBarrel || /^export \*/m.test(text) ? [`${path}: a barrel file`] : [];
}

/** Chains of imports that lead back to where they began; erased imports make none. */
function cycles(modules: readonly Module[]): string[] {
  const byPath = new Map(modules.map((module) => [module.path, module]));
  const done = new Set<string>();
  const problems: string[] = [];
  const visit = (module: Module, chain: readonly string[]): void => {
    const start = chain.indexOf(module.path);
    if (start !== -1) {
      problems.push(`${module.path}: a cycle: ${[...chain.slice(start), module.path].join(' > ')}`);
      return;
    }
    if (done.has(module.path)) return;
    for (const imported of module.imports) {
      const next = imported.isTypeOnly ? undefined : byPath.get(target(module, imported) ?? '');
      if (next !== undefined) visit(next, [...chain, module.path]);
    }
    done.add(module.path);
  };
  for (const module of modules) visit(module, []);
  return problems;
}

/** Files of src that the program never reaches; tests alone do not keep a file alive. */
function deadFiles(modules: readonly Module[]): string[] {
  const reached = reachedFrom('src/main.ts', modules);
  const dead = modules.filter(({ path, layer }) => layer !== undefined && !reached.has(path));
  const problems = dead
    .filter(({ path }) => !(path in filesAhead || `${dirname(path)}/` in filesAhead))
    .map(({ path }) => `${path}: nothing that starts at src/main.ts imports it`);
  for (const { path } of modules) {
    if (path in filesAhead && reached.has(path))
      problems.push(`${path}: is reached, so it leaves filesAhead`);
  }
  return problems;
}

function reachedFrom(start: string, modules: readonly Module[]): ReadonlySet<string> {
  const byPath = new Map(modules.map((module) => [module.path, module]));
  const reached = new Set<string>();
  const waiting = [start];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const module = byPath.get(path);
    if (module === undefined || reached.has(path)) continue;
    reached.add(path);
    for (const imported of module.imports) waiting.push(target(module, imported) ?? '');
  }
  return reached;
}

/** What is loaded is declared, what is declared is loaded, and each has its reason on record. */
function dependencyProblems(tree: Tree, modules: readonly Module[]): string[] {
  const source = modules.filter(({ layer }) => layer !== undefined);
  const loaded = new Map<string, string>();
  for (const { path, text, imports } of source) {
    const required = [...text.matchAll(/\brequire\('([^']+)'\)/g)].map(([, name]) => name!);
    for (const specifier of [...imports.map((imported) => imported.specifier), ...required]) {
      if (/^(?:\.|node:)/.test(specifier) || specifier.endsWith('.json')) continue;
      const parts = specifier.split('/');
      loaded.set(parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/'), path);
    }
  }
  const problems: string[] = [];
  for (const [name, path] of loaded) {
    if (!tree.dependencies.includes(name)) problems.push(`${path}: ${name} is not in dependencies`);
  }
  for (const name of tree.dependencies) {
    if (!loaded.has(name)) problems.push(`package.json: nothing in src uses ${name}`);
    if (!tree.architecture.includes(name)) problems.push(`ARCHITECTURE.md: no word about ${name}`);
  }
  return problems;
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}
