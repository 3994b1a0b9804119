import { DecompressionError } from '../core/compression.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import { type DownConversion, downConvert } from '../protocol/records/down-convert.ts';
import { RecordsDamagedError } from '../protocol/records/iterate.ts';
import type { Broker } from './broker.ts';

/** From this version of Fetch on record batches are sent as they are stored. */
export const batchesFrom = 4;
/** From this version on an answer holds one message at least, however large it is (KIP-74). */
export const oneAtLeastFrom = 3;
const timestampsFrom = 2;
/** Answers to old clients are small: every message in them is made anew, in one turn. */
export const messageSetBytesMax = 4 * 1024 * 1024;

/** What the client asked of a partition. */
export interface AskedOfPartition {
  readonly fetchOffset: number;
  readonly bytesMax: number;
}

export interface PartitionMessages {
  readonly errorCode: ErrorCode;
  readonly records: Buffer;
}

/** The messages of one answer to a client that does not know record batches. */
export class MessageSets {
  readonly #broker: Broker;
  readonly #apiVersion: number;
  #bytesLeft: number;
  /** What compressed batches may still become: in all as much as the largest of them. */
  #openedBytesLeft: number;
  #isEmpty = true;

  constructor(broker: Broker, apiVersion: number, bytesMax: number) {
    this.#broker = broker;
    this.#apiVersion = apiVersion;
    this.#bytesLeft = Math.min(bytesMax, messageSetBytesMax);
    this.#openedBytesLeft = broker.settings['decompressed.bytes.max'];
  }

  /** As many messages of the batches as there is room for. */
  of(asked: AskedOfPartition, batches: readonly Buffer[]): PartitionMessages {
    const bytesMax = Math.min(asked.bytesMax, this.#bytesLeft);
    const conversion: DownConversion = {
      magic: this.#apiVersion < timestampsFrom ? 0 : 1,
      offsetMin: asked.fetchOffset,
      bytesMax,
      oversized: this.#oversized(bytesMax === asked.bytesMax),
    };
    const { codecs, settings } = this.#broker;
    try {
      const openedBytesMax = settings['decompressed.bytes.max'];
      const limits = { codecs, openedBytesMax };
      const { records, openedBytes } = downConvert(
        batches,
        conversion,
        limits,
        this.#openedBytesLeft,
      );
      this.#openedBytesLeft -= openedBytes;
      this.#bytesLeft -= records.length;
      if (records.length > 0) this.#isEmpty = false;
      return { errorCode: ErrorCode.NONE, records };
    } catch (error) {
      const isDamaged = error instanceof RecordsDamagedError || error instanceof DecompressionError;
      if (!isDamaged) throw error;
      return { errorCode: ErrorCode.CORRUPT_MESSAGE, records: Buffer.alloc(0) };
    }
  }

  /**
   * Before version 3 a message that is larger than what the client takes of a partition is cut:
   * this is how the client learns of it. Where merely the answer is full it comes another time.
   */
  #oversized(isLimitOfPartition: boolean): DownConversion['oversized'] {
    if (this.#apiVersion >= oneAtLeastFrom) return this.#isEmpty ? 'given whole' : 'left out';
    return isLimitOfPartition ? 'cut' : 'left out';
  }
}
