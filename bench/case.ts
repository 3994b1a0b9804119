import { type Arm, BrokerProcess } from './broker-process.ts';
import { type Load, produceLibrdkafka, rawLoad } from './clients.ts';
import type { LoadResult } from './raw-client.ts';

/** One measured figure. */
export interface Sample {
  readonly what: string;
  readonly unit: string;
  readonly better: 'more' | 'less';
  readonly value: number;
}

/** What a figure should reach, by its name. */
export interface Goal {
  readonly what: RegExp;
  readonly unit: string;
  /** `ratio`: the first variant's median over the second one's. `value`: the first one's. */
  readonly of: 'ratio' | 'value';
  readonly limit: number;
}

/** What is compared with what: the first variant's figures are divided by the second one's. */
export interface Variant {
  readonly name: string;
  readonly arm: Arm;
  /** Measured once before the runs begin, for what both variants need to know of each other. */
  readonly prepare?: (session: Session) => Promise<void>;
  readonly measure: (session: Session) => Promise<Sample[]>;
}

export interface Case {
  readonly name: string;
  readonly about: string;
  readonly variants: readonly Variant[];
  readonly goals: readonly Goal[];
}

/** About half a gigabyte: Java compiles what is hot within the first seconds of load. */
const warmUp: Load = { topic: 'warm-up-0', partitions: 12, records: 400_000, recordBytes: 1000 };

/** One broker from its start to its end, and the loads that are put on it. */
export class Session {
  readonly arm: Arm;
  readonly #port: number;
  #broker: BrokerProcess;

  private constructor(arm: Arm, port: number, broker: BrokerProcess) {
    this.arm = arm;
    this.#port = port;
    this.#broker = broker;
  }

  static async open(arm: Arm, port: number): Promise<Session> {
    return new Session(arm, port, await BrokerProcess.start(arm, port));
  }

  get broker(): BrokerProcess {
    return this.#broker;
  }

  get address(): string {
    return this.#broker.address;
  }

  /** Stops the broker and starts it again with the same data. */
  async restart(): Promise<void> {
    const folder = await this.#broker.stop(true);
    this.#broker = await BrokerProcess.start(this.arm, this.#port, folder);
  }

  async close(): Promise<void> {
    await this.#broker.stop(false);
  }

  /** Creates `prefix-0`, `prefix-1`, … */
  async createTopics(prefix: string, partitions: number, topics = 1): Promise<void> {
    await rawLoad('create', this.address, { prefix, partitions, topics });
  }

  async warmUp(): Promise<void> {
    await this.createTopics('warm-up', warmUp.partitions);
    await produceLibrdkafka(this.address, warmUp);
  }

  /** Puts a load on the broker: how fast it was, and what it cost the broker. */
  async measure(what: string, load: () => Promise<LoadResult>): Promise<Sample[]> {
    const before = this.#broker.stats().cpuSeconds;
    const { bytes, records, seconds } = await load();
    const cpuSeconds = this.#broker.stats().cpuSeconds - before;
    return [
      { what, unit: 'MB/s', better: 'more', value: bytes / 1e6 / seconds },
      { what, unit: 'records/s', better: 'more', value: records / seconds },
      { what, unit: 'CPU s/GB', better: 'less', value: cpuSeconds / (bytes / 1e9) },
    ];
  }
}

export function less(what: string, unit: string, value: number): Sample {
  return { what, unit, better: 'less', value };
}
