/** The exit statuses of the command line. */
export const exitStatus = {
  /** Done, or stopped as asked. */
  ok: 0,
  /** Something failed: the data folder, the address, the disk, or the broker itself. */
  failure: 1,
  /** A setting or the command line is wrong. */
  usage: 2,
} as const;
