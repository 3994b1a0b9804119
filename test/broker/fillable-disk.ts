import type { FilePort, JournalFile } from '../../src/log/file-port.ts';
import { nodeFiles } from '../../src/log/node-files.ts';

/** Real files on a disk that is full whenever a test says so. */
export class FillableDisk {
  isFull = false;

  readonly files: FilePort = {
    ...nodeFiles,
    open: async (path, mode) => {
      if (mode === 'create') this.#check();
      return this.#guarded(await nodeFiles.open(path, mode));
    },
  };

  #guarded(file: JournalFile): JournalFile {
    return {
      ...file,
      write: async (pieces, position) => {
        this.#check();
        await file.write(pieces, position);
      },
    };
  }

  #check(): void {
    if (this.isFull) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
  }
}
