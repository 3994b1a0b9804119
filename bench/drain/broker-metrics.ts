/** What the broker counts, from its endpoint for operators. */
export interface BrokerCounts {
  /** Of all kinds; beside a group's few heartbeats and commits they are fetches. */
  readonly requests: number;
  /** Records that keyed delivery gave to consumers again. */
  readonly redelivered: number;
}

export async function brokerCounts(adminPort: number): Promise<BrokerCounts> {
  const answer = await fetch(`http://127.0.0.1:${adminPort}/metrics`);
  if (!answer.ok) throw new Error(`/metrics answered ${answer.status}`);
  const text = await answer.text();
  return {
    requests: sumOf(text, 'keylane_requests_total'),
    redelivered: sumOf(text, 'keylane_keyed_redelivered_records_total'),
  };
}

/** The sum over all labels; a metric that nothing has been counted for is missing. */
export function sumOf(text: string, metric: string): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    const [name, value] = /^(\w+)(?:\{.*\})? (\S+)$/.exec(line)?.slice(1) ?? [];
    if (name === metric) sum += Number(value);
  }
  return sum;
}
