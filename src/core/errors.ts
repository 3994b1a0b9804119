/**
 * Operational errors: something outside this process went wrong (a disk, a setting, a peer).
 * Protocol outcomes are error codes in answers, and broken invariants are assertions; neither is
 * an instance of these.
 */

/** What each operational error means to the person who reads it. The code is stable. */
export const errorTable = {
  CONFIG_INVALID: 'a setting is wrong or unknown',
  DATA_DIR_LOCKED: 'another broker uses this data folder',
  DATA_DIR_UNUSABLE: 'the data folder cannot be read or written',
  JOURNAL_DAMAGED: 'bytes that were known to be synced are damaged',
  JOURNAL_VERSION_UNKNOWN: 'the data was written by a newer version',
  SNAPSHOT_DAMAGED: 'no usable snapshot was found',
  DISK_FULL: 'the disk is full',
  DISK_FAILED: 'the disk reported an error',
  LISTEN_FAILED: 'the address cannot be listened on',
  ADMIN_FAILED: 'the broker could not be asked over its admin endpoint',
} as const;

export type ErrorCode = keyof typeof errorTable;

export class BrokerError extends Error {
  override name = 'BrokerError';
  readonly code: ErrorCode;
  /** Facts for the log line and for tests, such as `{ file, position }`. */
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    message: string,
    fields: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.fields = fields;
  }
}
