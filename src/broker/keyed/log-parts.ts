import type { FetchResponseInput } from '../../protocol/schema/01-fetch.ts';
import { tellsLeader } from '../fetch-answer.ts';
import { FetchLook } from '../fetch-look.ts';
import { type FetchPartitions, noRow } from '../fetch-partitions.ts';
import { type FetchOptions, topicIdsFrom } from '../fetch-request.ts';
import type { RequestContext } from '../handler.ts';

export type PartitionResponse = FetchResponseInput['responses'][number]['partitions'][number];

/** A partition as the request names it: a lane, or one of the log. */
export interface AskedPartition {
  readonly topicName: string;
  readonly topicId: string;
  readonly index: number;
  readonly offset: number;
  readonly bytesMax: number;
  readonly leaderEpoch: number;
}

/** What was found in the partitions of the log, to be written before `release` is called. */
export interface LogAnswer {
  readonly responses: ReadonlyMap<AskedPartition, PartitionResponse>;
  readonly release: () => void;
}

/**
 * The partitions of the log in a fetch that names lanes too. A group may have topics of both kinds,
 * and clients ask a broker for everything in one request.
 */
export class LogParts {
  readonly #context: RequestContext;
  readonly #options: FetchOptions;
  readonly #partitions: FetchPartitions;
  readonly #rows = new Map<number, AskedPartition>();

  constructor(context: RequestContext, options: FetchOptions, asked: readonly AskedPartition[]) {
    this.#context = context;
    this.#options = options;
    const { topics, fetchSessions } = context.broker;
    this.#partitions = fetchSessions.newPartitions(asked.length);
    const byId = options.apiVersion >= topicIdsFrom;
    for (const one of asked) {
      const { topicName: name, topicId: id, index, offset, bytesMax, leaderEpoch } = one;
      const topic = byId ? topics.byId(id) : topics.byName(name);
      const stored = topic?.partitions[index] ?? -1;
      const number = this.#partitions.topicNumber({ name, id });
      const known = this.#partitions.find(number, index);
      const row = known === noRow ? this.#partitions.add(number, index, stored) : known;
      this.#partitions.ask(row, stored, offset, bytesMax, leaderEpoch);
      this.#rows.set(row, one);
    }
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0;
  }

  /** Calls back once there are enough records in them, or an error, until `stop`. */
  start(onEnough: () => void): void {
    if (this.isEmpty) return;
    this.#partitions.watch();
    this.#lookFor(onEnough).catch((error: unknown) => this.#context.broker.fatal(error));
  }

  stop(): void {
    this.#partitions.onNews = undefined;
    this.#partitions.unwatch();
  }

  async #lookFor(onEnough: () => void): Promise<void> {
    const partitions = this.#partitions;
    partitions.onNews = undefined;
    partitions.appendedBytes = 0;
    partitions.sawOtherNews = false;
    const { bytes, isError } = await this.#look();
    const bytesMin = Math.max(this.#options.minBytes, 1);
    if (isError || bytes >= bytesMin) {
      onEnough();
      return;
    }
    const onNews = () => {
      const isEnough = bytes + partitions.appendedBytes >= bytesMin;
      if (isEnough || partitions.sawOtherNews) this.start(onEnough);
    };
    partitions.onNews = onNews;
    // Some may have come since the look began.
    onNews();
  }

  async #look(): Promise<FetchLook> {
    const { broker } = this.#context;
    const { apiVersion, maxBytes } = this.#options;
    const look = new FetchLook(broker, this.#partitions, {
      bytesMax: Math.min(maxBytes, broker.settings['fetch.max.bytes']),
      knowsTopicIds: apiVersion >= topicIdsFrom,
      endsWhenFull: false,
      oneOfEach: false,
    });
    for (let next = look.run(); next !== undefined; next = look.run()) {
      if (next === 'pause') await new Promise<void>((resolve) => broker.clock.soon(resolve));
      else await look.wait(next);
    }
    return look;
  }

  /** What there is now. */
  async read(): Promise<LogAnswer> {
    if (this.isEmpty) return nothing;
    for (;;) {
      const { found } = await this.#look();
      const read = await this.#context.broker.reader.read(found.plans);
      // Records that went away meanwhile are below the log start now: the next look says so.
      if (read === undefined) continue;
      const responses = new Map<AskedPartition, PartitionResponse>();
      for (let at = 0; at < found.count; at++) {
        const asked = this.#rows.get(found.row(at))!;
        const errorCode = found.errorCode(at);
        responses.set(asked, {
          partitionIndex: asked.index,
          errorCode,
          highWatermark: found.highWatermark(at),
          lastStableOffset: found.highWatermark(at),
          logStartOffset: found.logStart(at),
          abortedTransactions: this.#options.isolationLevel === 0 ? null : [],
          records: found.of(at, read.pieces) ?? [],
          ...(tellsLeader(errorCode) && this.#leader()),
        });
      }
      return { responses, release: read.release };
    }
  }

  #leader(): Pick<PartitionResponse, 'currentLeader'> {
    return { currentLeader: this.#context.broker.nodes.leader };
  }
}

const nothing: LogAnswer = { responses: new Map(), release: () => undefined };
