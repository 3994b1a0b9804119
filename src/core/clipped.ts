/** Long enough for every text of our own; far below the 32 KiB of a string on the wire. */
const charactersMax = 2000;

/** A text that quotes what a client sent, which may be as long as the wire allows. */
export function clipped(text: string): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax)}…`;
}
