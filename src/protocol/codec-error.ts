/**
 * What goes wrong between values and bytes. A `DecodeError` is a peer's fault: it costs that
 * peer's connection. An `EncodeError` is this program's: a value that the version cannot carry.
 */

export class DecodeError extends Error {
  override name = 'DecodeError';
}

export class EncodeError extends Error {
  override name = 'EncodeError';
}
