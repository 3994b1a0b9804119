/** What a group in keyed delivery has handled, and what it must never see. */
export class Handled {
  readonly #name: string;
  /** How many numbers of each key were handled to the end; they come in order, from 0 on. */
  readonly #counts = new Map<string, number>();
  readonly #inHandler = new Set<string>();
  readonly faults: string[] = [];
  records = 0;
  again = 0;
  joins = 0;
  /** Members that gave up. */
  crashes = 0;

  constructor(name: string) {
    this.#name = name;
  }

  begin(key: string, number: number): void {
    const next = this.#counts.get(key) ?? 0;
    if (this.#inHandler.has(key)) this.#fault(`${key}=${number} while another is in work`);
    if (number > next) this.#fault(`${key}=${number} before ${next}`);
    if (number < next) this.again++;
    this.#inHandler.add(key);
  }

  end(key: string, number: number): void {
    this.#counts.set(key, Math.max(this.#counts.get(key) ?? 0, number + 1));
    this.#inHandler.delete(key);
    this.records++;
  }

  #fault(what: string): void {
    this.faults.push(`${this.#name}: ${what}`);
  }

  /** Keys whose numbers were not handled up to these, and how far they are. */
  missing(sent: ReadonlyMap<string, number>): string[] {
    return [...sent]
      .filter(([key, count]) => (this.#counts.get(key) ?? 0) < count)
      .map(([key, count]) => `${this.#name}: ${key} ${this.#counts.get(key) ?? 0} of ${count}`);
  }
}
