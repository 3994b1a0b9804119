/**
 * What is known of clients' habits (measured; a test of each client in compat-tests holds the table
 * to it). It decides what a commit and a fetch say about records that the consumer has in hand.
 */

export const Proof = {
  /** A fetch at the lane's end proves everything below handled. */
  everything: 'everything',
  /**
   * All but the last answer with records; that one too once a fetch that named the lane at its end
   * brought nothing for it and another one names it there again. For clients that send the next
   * fetch before the handler starts.
   */
  afterEmpty: 'afterEmpty',
  /** What was answered before the newest answer with records among the lanes that are asked for. */
  afterLater: 'afterLater',
  nothing: 'nothing',
} as const;
export type Proof = (typeof Proof)[keyof typeof Proof];

export interface ClientTraits {
  readonly name: string;
  /** A commit covers handled records only. Else the record in the handler may be among them. */
  readonly commitsHandledOnly: boolean;
  /** How many later records have to be committed before a committed one counts as handled. */
  readonly commitLag: number;
  /** `delivery.commit.lag` says so of each record; else it holds for all of a commit together. */
  readonly isLagDeclared: boolean;
  readonly proof: Proof;
  /** JoinGroup comes only between handlers: what is in hand then is not being handled. */
  readonly rejoinsBetweenHandlers: boolean;
  /** A repeated fetch below the lane's end, on the same connection, gives records back. */
  readonly rejectsByRefetch: boolean;
  /** Such a fetch tells of a failed handler only after this long a silence of its connection. */
  readonly rejectionSilenceMs: number;
  /** Sends heartbeats while a handler runs. */
  readonly heartbeatsInBackground: boolean;
  /** Its last answer is queued in the client while it works on the one before. */
  readonly fetchesInBackground: boolean;
}

const unknownClient: ClientTraits = {
  name: 'unknown',
  commitsHandledOnly: false,
  commitLag: 1,
  isLagDeclared: false,
  proof: Proof.nothing,
  rejoinsBetweenHandlers: false,
  rejectsByRefetch: false,
  rejectionSilenceMs: 0,
  heartbeatsInBackground: true,
  fetchesInBackground: true,
};

const java: ClientTraits = {
  ...unknownClient,
  name: 'java',
  commitsHandledOnly: true,
  proof: Proof.afterEmpty,
  rejoinsBetweenHandlers: true,
  rejectsByRefetch: true,
  fetchesInBackground: false,
};

const kafkajs: ClientTraits = {
  ...unknownClient,
  name: 'kafkajs',
  commitsHandledOnly: true,
  proof: Proof.everything,
  rejoinsBetweenHandlers: true,
  rejectsByRefetch: true,
  rejectionSilenceMs: 200,
  heartbeatsInBackground: false,
  fetchesInBackground: false,
};

const kafkaPython: ClientTraits = { ...java, name: 'kafka-python', rejectsByRefetch: false };

const franzGo: ClientTraits = {
  ...unknownClient,
  name: 'franz-go',
  commitsHandledOnly: true,
  proof: Proof.afterLater,
};

const sarama: ClientTraits = {
  ...unknownClient,
  name: 'sarama',
  commitsHandledOnly: true,
  rejoinsBetweenHandlers: true,
};

const aiokafka: ClientTraits = { ...unknownClient, name: 'aiokafka', proof: Proof.afterLater };
const librdkafka: ClientTraits = { ...unknownClient, name: 'librdkafka' };
const kafkaGo: ClientTraits = { ...unknownClient, name: 'kafka-go' };
/** Records are committed when they enter its stream, which reads up to 1,024 ahead. */
const platformatic: ClientTraits = { ...unknownClient, name: 'platformatic', commitLag: 1024 };

/** What a client says of itself. */
export interface ClientHints {
  /** ClientSoftwareName of ApiVersions, from version 3 on; empty if it was not given. */
  readonly softwareName: string;
  readonly clientId: string;
  /** The names of its assignors. */
  readonly protocolNames: readonly string[];
}

const bySoftwareName: readonly (readonly [prefix: string, traits: ClientTraits])[] = [
  ['apache-kafka-java', java],
  ['librdkafka', librdkafka],
  ['confluent-kafka', librdkafka],
  ['rdkafka', librdkafka],
  ['kgo', franzGo],
  ['franz-go', franzGo],
  ['sarama', sarama],
  ['kafka-python', kafkaPython],
  ['aiokafka', aiokafka],
  ['platformatic', platformatic],
  ['@platformatic', platformatic],
  ['kafkajs', kafkajs],
];

/** By its name in ApiVersions, else by its habits. */
export function traitsOf(hints: ClientHints): ClientTraits {
  const softwareName = hints.softwareName.toLowerCase();
  for (const [prefix, traits] of bySoftwareName) {
    if (softwareName.startsWith(prefix)) return traits;
  }
  const { clientId, protocolNames } = hints;
  // kafkajs asks for ApiVersions 2 at most, in which clients have no name; so do the ones below.
  if (protocolNames.includes('RoundRobinAssigner')) return kafkajs;
  if (clientId.startsWith('aiokafka')) return aiokafka;
  if (clientId.startsWith('kafka-python')) return kafkaPython;
  if (clientId.includes('segmentio/kafka-go')) return kafkaGo;
  return unknownClient;
}
