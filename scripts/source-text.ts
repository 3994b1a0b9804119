/**
 * Reads TypeScript as far as the tidy rules need it: what is code, what is comment or text, and
 * what is imported. It relies on the formatter: one statement a line, imports at its beginning.
 */

export interface Import {
  /** As written: `./table.ts`, `node:fs`, `pino`. */
  readonly specifier: string;
  /** Erased by the compiler, so that it makes no cycle. */
  readonly isTypeOnly: boolean;
  readonly isReExport: boolean;
}

/** What may stand before a slash that begins a regular expression. */
const beforeRegex = /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|void|await))\s*$/;

/** The text with comments, and the insides of strings and of regular expressions, as spaces. */
export function codeOnly(text: string): string {
  const out = [...text];
  const blank = (from: number, to: number): void => {
    for (let index = from; index < to; index++) if (out[index] !== '\n') out[index] = ' ';
  };
  // Of each template literal that is open: how deep the braces are in its ${ }.
  const templates: number[] = [];
  for (let index = 0; index < out.length; ) {
    const here = out[index]!;
    const next = out[index + 1];
    let end = index + 1;
    if (here === '/' && next === '/') {
      end = indexAfter(out, index, '\n') - 1;
      blank(index, end);
    } else if (here === '/' && next === '*') {
      end = index + 2;
      while (end < out.length && !(out[end - 1] === '*' && out[end] === '/' && end > index + 2))
        end++;
      blank(index, ++end);
    } else if (here === '"' || here === "'") {
      end = endOfQuoted(out, index, here);
      blank(index + 1, end - 1);
    } else if (here === '`' || (here === '}' && templates.at(-1) === 0)) {
      if (here === '}') templates.pop();
      end = endOfTemplatePart(out, index + 1);
      const opensCode = out[end - 1] === '{';
      blank(index + 1, end - (opensCode ? 2 : 1));
      if (opensCode) templates.push(0);
    } else if (
      here === '/' &&
      beforeRegex.test(out.slice(Math.max(0, index - 20), index).join(''))
    ) {
      end = endOfRegex(out, index);
      blank(index + 1, end - 1);
    } else if (templates.length > 0 && (here === '{' || here === '}')) {
      templates[templates.length - 1]! += here === '{' ? 1 : -1;
    }
    index = end;
  }
  return out.join('');
}

/** All imports of a file: static, dynamic with a constant, re-exports, and workers by their URL. */
export function importsOf(text: string): Import[] {
  const found: Import[] = [];
  const statement =
    /^(import|export)\s+(type\s+)?(?:([\w*{][^;'"]*?)\s+from\s+)?['"]([^'"]+)['"];/gm;
  for (const [, keyword, type, , specifier] of text.matchAll(statement)) {
    found.push({
      specifier: specifier!,
      isTypeOnly: type !== undefined,
      isReExport: keyword === 'export',
    });
  }
  for (const [, specifier] of text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g)) {
    found.push({ specifier: specifier!, isTypeOnly: false, isReExport: false });
  }
  // A worker is named by what it is compiled to.
  for (const [, path] of text.matchAll(/\bnew URL\('(\.[^']+)\.js', import\.meta\.url\)/g)) {
    found.push({ specifier: `${path}.ts`, isTypeOnly: false, isReExport: false });
  }
  return found;
}

export interface FunctionSpan {
  readonly name: string;
  /** Number of its first line. */
  readonly line: number;
  readonly lines: number;
}

/** Functions of a module and methods of its classes, found by their indentation. */
export function functionsOf(code: string): FunctionSpan[] {
  const lines = code.split('\n');
  const spans: FunctionSpan[] = [];
  const start = /^(\s*)(?:export )?(?:async )?function\*? (\w+)|^( {2})(?:[a-z]+ )*(#?\w+)[(<]/;
  for (let first = 0; first < lines.length; first++) {
    const match = start.exec(lines[first]!);
    const name = match?.[2] ?? match?.[4];
    if (match === null || name === undefined || /^(if|for|while|switch|catch)$/.test(name))
      continue;
    const indent = match[1] ?? match[3] ?? '';
    const last = endOfFunction(lines, first, indent);
    if (last !== undefined) spans.push({ name, line: first + 1, lines: last - first + 1 });
  }
  return spans;
}

/** Index of the closing line, or undefined where there is a signature without a body, or a call. */
function endOfFunction(
  lines: readonly string[],
  first: number,
  indent: string,
): number | undefined {
  for (let index = first; index < lines.length; index++) {
    const line = lines[index]!.trimEnd();
    if (index > first && line === `${indent}}`) return index;
    const isAtIndent = index === first || line.startsWith(`${indent})`);
    if (isAtIndent && /[;,]$/.test(line)) return undefined;
    if (index > first && line !== '' && !line.startsWith(`${indent} `) && !isAtIndent) {
      return undefined;
    }
  }
  return undefined;
}

function indexAfter(out: readonly string[], from: number, wanted: string): number {
  const found = out.indexOf(wanted, from);
  return found === -1 ? out.length + 1 : found + 1;
}

function endOfQuoted(out: readonly string[], start: number, quote: string): number {
  let index = start + 1;
  while (index < out.length && out[index] !== quote && out[index] !== '\n') {
    index += out[index] === '\\' ? 2 : 1;
  }
  return index + 1;
}

/** After the closing backtick, or after the brace of the next `${`. */
function endOfTemplatePart(out: readonly string[], start: number): number {
  for (let index = start; index < out.length; index++) {
    if (out[index] === '\\') index++;
    else if (out[index] === '`') return index + 1;
    else if (out[index] === '$' && out[index + 1] === '{') return index + 2;
  }
  return out.length;
}

function endOfRegex(out: readonly string[], start: number): number {
  let isInClass = false;
  for (let index = start + 1; index < out.length && out[index] !== '\n'; index++) {
    if (out[index] === '\\') index++;
    else if (out[index] === '[') isInClass = true;
    else if (out[index] === ']') isInClass = false;
    else if (out[index] === '/' && !isInClass) return index + 1;
  }
  // It was a division after all.
  return start + 1;
}
