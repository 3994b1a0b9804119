import type { FilePort } from '../log/file-port.ts';

/**
 * A snapshot of another member is put together in `<folder>.install`. It counts from the moment in
 * which that is renamed to `<folder>.installed`; then it takes the place of `<folder>`, now or at
 * the next start.
 */
export function installFolder(folder: string): string {
  return `${folder}.install`;
}

function installedFolder(folder: string): string {
  return `${folder}.installed`;
}

/** What was put together takes the place of the folder that nobody has open. */
export async function putInPlace(files: FilePort, folder: string): Promise<void> {
  await files.syncFolder(installFolder(folder));
  await files.rename(installFolder(folder), installedFolder(folder));
  await files.syncFolder(parentOf(folder));
  await endInstall(files, folder);
}

/** At a start: ends what a stop has interrupted. */
export async function endInstall(files: FilePort, folder: string): Promise<void> {
  const installed = installedFolder(folder);
  if (!(await files.list(parentOf(folder))).includes(nameOf(installed))) return;
  await files.removeFolder(folder);
  await files.rename(installed, folder);
  await files.syncFolder(parentOf(folder));
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
