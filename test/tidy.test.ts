import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { codeOnly, functionsOf, importsOf } from '../scripts/source-text.ts';
import { readTree, type SourceFile, untidy } from '../scripts/tidy.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('the tree is tidy', () => {
  assert.deepEqual(untidy(readTree(root)), []);
});

/** The problems of a small tree, in which everything is reached from src/main.ts. */
function problemsOf(sources: Record<string, string>, dependencies: string[] = []): string[] {
  const files: SourceFile[] = Object.entries(sources).map(([path, text]) => ({ path, text }));
  const roots = files.filter(({ path }) => /^src\/.*\//.test(path));
  const main = roots.map(({ path }) => `import './${path.slice(4)}';\n`).join('');
  const all = [...files, { path: 'src/main.ts', text: main }];
  return untidy({ files: all, dependencies, architecture: 'uses `pino` for logs' });
}

describe('each rule finds what it is for', () => {
  test('imports go one way', () => {
    const found = problemsOf({
      'src/core/a.ts': `import { b } from '../log/b.ts';\n`,
      'src/log/b.ts': `import { c } from '../core/c.ts';\n`,
      'src/core/c.ts': 'export const c = 1;\n',
      'src/raft/d.ts': `import type { Settings } from '../config/e.ts';\n`,
      'src/config/e.ts': 'export interface Settings {}\n',
    });
    assert.deepEqual(found, [
      'src/core/a.ts: core may not import src/log/b.ts',
      'src/raft/d.ts: raft may not import src/config/e.ts',
    ]);
  });

  test('a new folder has to be named', () => {
    assert.match(problemsOf({ 'src/extras/a.ts': '\n' })[0]!, /is no layer/);
  });

  test('src imports nothing of the tests', () => {
    const found = problemsOf({ 'src/core/a.ts': `import '../../test/support.ts';\n` });
    assert.deepEqual(found, ['src/core/a.ts: core may not import test/support.ts']);
  });

  test('node modules stay at the edges', () => {
    const text = `import { readFileSync } from 'node:fs';\n`;
    assert.deepEqual(problemsOf({ 'src/net/a.ts': text, 'src/log/node-files.ts': text }), []);
    assert.deepEqual(problemsOf({ 'src/log/a.ts': text }), [
      'src/log/a.ts: log may not import node:fs',
    ]);
  });

  test('pure layers know no time, chance or waiting, except in words', () => {
    const text = [
      '// A Date in a comment, and async, are fine.',
      `const text = 'await';`,
      'const now = Date.now();',
      'async function f() {}',
      'const a = Math.random() + this.random.next();',
      'const options = { async: 1, process: 2 };',
      `const template = \`await \${Date}\`;`,
    ].join('\n');
    assert.deepEqual(problemsOf({ 'src/groups/a.ts': text }), [
      'src/groups/a.ts:3: groups may not use Date',
      'src/groups/a.ts:4: groups may not use async',
      'src/groups/a.ts:5: groups may not use Math.random',
      'src/groups/a.ts:7: groups may not use Date',
    ]);
    assert.deepEqual(problemsOf({ 'src/broker/a.ts': text }), []);
  });

  test('cycles are found, but erased imports make none', () => {
    const found = problemsOf({
      'src/core/a.ts': `import { b } from './b.ts';\n`,
      'src/core/b.ts': `import { c } from './c.ts';\n`,
      'src/core/c.ts': `import { a } from './a.ts';\nimport type { b } from './b.ts';\n`,
    });
    assert.deepEqual(found, [
      'src/core/a.ts: a cycle: src/core/a.ts > src/core/b.ts > src/core/c.ts > src/core/a.ts',
    ]);
  });

  test('a file that nothing imports is dead', () => {
    const files = [
      { path: 'src/main.ts', text: `await import('./core/a.ts');\n` },
      { path: 'src/core/a.ts', text: '' },
      { path: 'src/core/b.ts', text: '' },
      { path: 'test/core/b.test.ts', text: `import '../../src/core/b.ts';\n` },
    ];
    assert.deepEqual(untidy({ files, dependencies: [], architecture: '' }), [
      'src/core/b.ts: nothing that starts at src/main.ts imports it',
    ]);
  });

  test('barrels are found', () => {
    const barrel = `export { a } from './a.ts';\nexport type {\n  B,\n} from './a.ts';\n`;
    const found = problemsOf({
      'src/core/a.ts': 'export const a = 1;\n',
      'src/core/b.ts': barrel,
      'src/core/c.ts': `export * from './a.ts';\nexport const c = 1;\n`,
      'src/core/d.ts': `export { a } from './a.ts';\nexport const d = 1;\n`,
    });
    assert.deepEqual(found, ['src/core/b.ts: a barrel file', 'src/core/c.ts: a barrel file']);
  });

  test('long lines, files and functions are found', () => {
    const found = problemsOf({
      'src/core/a.ts': `const a = '${'é'.repeat(100)}';\nconst b = '${'é'.repeat(88)}';\n`,
      'test/a.test.ts': `test('${'e'.repeat(100)}', () => {});\n// ${'e'.repeat(100)}\n`,
      'src/core/b.ts': 'export {};\n'.repeat(501),
      'src/core/c.ts': `export function long(\n  a: string,\n): void {\n${'  a;\n'.repeat(67)}}\n`,
      'src/core/d.ts': `class D {\n  #long(): void {\n${'    a;\n'.repeat(69)}  }\n}\n`,
      'src/core/e.ts': `function short(): void {\n${'  a;\n'.repeat(68)}}\n`,
    });
    assert.deepEqual(found, [
      'src/core/a.ts:1: 113 columns',
      'src/core/a.ts:2: 101 columns',
      'src/core/b.ts: 501 lines without an entry in longFiles',
      'src/core/c.ts:1: long has 71 lines',
      'src/core/d.ts:2: #long has 71 lines',
      'test/a.test.ts:2: 103 columns',
    ]);
  });

  test('unfinished work and paths of machines are found', () => {
    const found = problemsOf({
      'src/core/a.ts': `// ${'TO'}DO later\n`,
      'test/b.test.ts': `const folder = '${'/home'}/me/data';\nconst fine = 'https://x/home/y';\n`,
    });
    assert.deepEqual(found, [
      'src/core/a.ts:1: unfinished work',
      'test/b.test.ts:1: a path of some machine',
    ]);
  });

  test('tests that do not run are found', () => {
    const only = 'only';
    const text = [
      `test.${only}('a')`,
      'test(1, { skip: isWindows })',
      `test(1, { ${only}: true })`,
    ];
    assert.equal(problemsOf({ 'test/a.test.ts': text.join('\n') }).length, 2);
  });

  test('a wait needs its reason', () => {
    const wait = 'await new Promise((resolve) => setTimeout(resolve, 10));';
    const text = `${wait}\n// The kernel tells nobody when it has done so.\n${wait}\n`;
    assert.deepEqual(problemsOf({ 'test/a.test.ts': text }), [
      'test/a.test.ts:1: a wait without a comment that says why',
    ]);
  });

  test('dependencies are declared, used and explained', () => {
    const source = {
      'src/core/a.ts': `import { pino } from 'pino';\nimport { x } from '@some/thing/deep.js';\n`,
    };
    assert.deepEqual(problemsOf(source, ['pino', 'ajv']), [
      'ARCHITECTURE.md: no word about ajv',
      'package.json: nothing in src uses ajv',
      'src/core/a.ts: @some/thing is not in dependencies',
    ]);
  });
});

describe('reading of source text', () => {
  test('comments, strings and regular expressions are no code', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['a // b', 'a     '],
      ['a /* b\nc */ d', 'a     \n     d'],
      [`f('a\\'b') + "c"`, `f('    ') + " "`],
      [`\`a\${b}c\${\`d\${e}\`}f\` + g`, `\` \${b} \${\` \${e}\`} \` + g`],
      [`\`\${{ a: { b } }}c\` + d`, `\`\${{ a: { b } }} \` + d`],
      ['x = /[/"]b/.test(a) / 2', 'x = /     /.test(a) / 2'],
      ['a / b / c', 'a / b / c'],
      [`'it' // isn't\nb`, `'  '         \nb`],
    ];
    for (const [text, code] of cases) assert.equal(codeOnly(text), code, text);
  });

  test('imports are read in all their forms', () => {
    const text = [
      `import a from 'a';`,
      `import type { B } from 'b';`,
      'import {',
      '  c,',
      '  type D,',
      `} from './c.ts';`,
      `import 'e';`,
      `export { f } from 'f';`,
      `export type { G } from 'g';`,
      `const h = await import('h');`,
      `new Worker(new URL('./j.js', import.meta.url))`,
      `export const text = 'i';`,
    ].join('\n');
    const found = importsOf(text);
    assert.deepEqual(
      found.map(({ specifier }) => specifier),
      ['a', 'b', './c.ts', 'e', 'f', 'g', 'h', './j.ts'],
    );
    assert.deepEqual(
      found.filter(({ isTypeOnly }) => isTypeOnly).map(({ specifier }) => specifier),
      ['b', 'g'],
    );
  });

  test('functions are found, signatures without a body are not', () => {
    const text = [
      'export async function a(): Promise<void> {',
      '  if (x) {',
      '  }',
      '}',
      'interface I {',
      '  b(): void;',
      '  c(',
      '    x: string,',
      '  ): void;',
      '}',
      'class D {',
      '  readonly x = 1;',
      '  get e(): number {',
      '    return 1;',
      '  }',
      '}',
    ].join('\n');
    assert.deepEqual(functionsOf(text), [
      { name: 'a', line: 1, lines: 4 },
      { name: 'e', line: 13, lines: 3 },
    ]);
  });
});
