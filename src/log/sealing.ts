import { type FilePort, isCode } from './file-port.ts';
import { IndexFile, writeIndexFile } from './index-file.ts';
import type { LogFile } from './journal-file.ts';
import { indexFolder, indexName, indexPath } from './recovery.ts';

/** Moves the extents of a file from memory to an index file; false if there is no space for it. */
export async function sealFile(
  files: FilePort,
  folder: string,
  logFile: LogFile,
  pause: () => Promise<void>,
): Promise<boolean> {
  const name = indexName(logFile.header.basePosition);
  try {
    await writeIndexFile(files, indexFolder(folder), name, logFile.table!, pause);
  } catch (error) {
    if (isCode(error, 'ENOSPC')) return false;
    throw error;
  }
  logFile.index = await IndexFile.open(files, indexPath(folder, logFile));
  if (logFile.index !== undefined) logFile.table = undefined;
  return true;
}
