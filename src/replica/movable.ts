/** Bytes in messages between threads: what is in `transfer` changes hands and is not copied. */

/** A copy that may go, of what has to stay here. */
export function movableCopy(bytes: Uint8Array, transfer: ArrayBuffer[]): Uint8Array {
  const copy = new Uint8Array(bytes);
  transfer.push(copy.buffer);
  return copy;
}

/** The bytes themselves where they have their memory alone, and not in the pool of small ones. */
export function movable(bytes: Buffer, transfer: ArrayBuffer[]): Uint8Array {
  if (bytes.buffer.byteLength !== bytes.length) return movableCopy(bytes, transfer);
  transfer.push(bytes.buffer as ArrayBuffer);
  return bytes;
}
