import { ErrorCode } from '../protocol/error-codes.ts';
import { isPacked } from '../protocol/records/batch-header.ts';
import type { DownConversion, DownConverted } from '../protocol/records/down-convert.ts';
import { type BatchConversion, convertBatches } from '../replica/stored-batches.ts';
import type { Broker } from './broker.ts';

/** From this version of Fetch on record batches are sent as they are stored. */
export const batchesFrom = 4;
/** From this version on an answer holds one message at least, however large it is (KIP-74). */
export const oneAtLeastFrom = 3;
const timestampsFrom = 2;
/** Answers to old clients are small: every message in them is made anew. */
export const messageSetBytesMax = 4 * 1024 * 1024;
/** What of an answer is made on the event loop, uncompressed batches alone: one to five ms. */
const hereBytesMax = 64 * 1024;
const nothing: Buffer = Buffer.alloc(0);

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
  #hereBytesLeft = hereBytesMax;
  #isEmpty = true;

  constructor(broker: Broker, apiVersion: number, bytesMax: number) {
    this.#broker = broker;
    this.#apiVersion = apiVersion;
    this.#bytesLeft = Math.min(bytesMax, messageSetBytesMax);
    this.#openedBytesLeft = broker.settings['decompressed.bytes.max'];
  }

  /** As many messages of the batches as there is room for. One call at a time. */
  of(
    asked: AskedOfPartition,
    batches: readonly Buffer[],
  ): PartitionMessages | Promise<PartitionMessages> {
    const bytesMax = Math.min(asked.bytesMax, this.#bytesLeft);
    const { codecs, settings, storedBatches } = this.#broker;
    const conversion: BatchConversion = {
      asked: {
        magic: this.#apiVersion < timestampsFrom ? 0 : 1,
        offsetMin: asked.fetchOffset,
        bytesMax,
        oversized: this.#oversized(bytesMax === asked.bytesMax),
      },
      openedBytesMax: settings['decompressed.bytes.max'],
      openedBytesLeft: this.#openedBytesLeft,
    };
    if (this.#mayConvertHere(batches)) {
      return this.#take(convertBatches(batches, conversion, codecs));
    }
    return storedBatches.convert(batches, conversion).then((converted) => this.#take(converted));
  }

  #mayConvertHere(batches: readonly Buffer[]): boolean {
    for (const batch of batches) {
      if (isPacked(batch)) return false;
      this.#hereBytesLeft -= batch.length;
    }
    return this.#hereBytesLeft >= 0;
  }

  #take(converted: DownConverted | 'damaged' | 'stopped'): PartitionMessages {
    if (converted === 'damaged') return { errorCode: ErrorCode.CORRUPT_MESSAGE, records: nothing };
    if (converted === 'stopped') {
      return { errorCode: ErrorCode.NOT_LEADER_OR_FOLLOWER, records: nothing };
    }
    const { records, openedBytes } = converted;
    this.#openedBytesLeft -= openedBytes;
    this.#bytesLeft -= records.length;
    if (records.length > 0) this.#isEmpty = false;
    return { errorCode: ErrorCode.NONE, records };
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
