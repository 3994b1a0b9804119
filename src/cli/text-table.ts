export type Cell = string | number;

/** Columns as wide as their widest cell; numbers stand at the right. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const isNumber = head.map((_, i) => rows.every((row) => typeof (row[i] ?? 0) === 'number'));
  const all = [head, ...rows].map((row) => head.map((_, i) => safe(String(row[i] ?? '-'))));
  const widths = head.map((_, i) => Math.max(...all.map((row) => row[i]!.length)));
  return all.map((row) =>
    row
      .map((cell, i) => (isNumber[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd(),
  );
}

/** Names and keys come from clients: none of them may move the cursor. */
function safe(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '�');
}
