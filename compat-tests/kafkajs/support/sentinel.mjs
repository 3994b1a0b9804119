/** Watches over the order of each key in keyed delivery; the other Node suites use it too. */
import assert from 'node:assert/strict';
import { until } from './harness.mjs';

/**
 * Notes what all consumers of a group do. Per key, records are numbered from 0 on; at most one may
 * be in work at a time, and none may be begun before the one in front of it is done. A record that
 * comes again is counted: whoever provokes a failure decides how many are right.
 */
export class Sentinel {
  constructor() {
    this.inWork = new Map();
    this.next = new Map();
    this.skipped = new Set();
    this.faults = [];
    this.begun = 0;
    this.handled = 0;
    this.repeated = 0;
    this.inWorkMax = 0;
  }

  /** This record will never be handled. */
  skip(key, number) {
    this.skipped.add(`${key}/${number}`);
  }

  /** The number of the key's next record, after those that were handled or are skipped. */
  nextOf(key) {
    let next = this.next.get(key) ?? 0;
    while (this.skipped.has(`${key}/${next}`)) next++;
    return next;
  }

  begin(who, key, number) {
    const other = this.inWork.get(key);
    if (other !== undefined) this.faults.push(`${key}/${number} at ${who} and at ${other}`);
    const next = this.nextOf(key);
    if (number > next) this.faults.push(`${key}/${number} before ${key}/${next}, at ${who}`);
    this.inWork.set(key, who);
    this.begun++;
    this.inWorkMax = Math.max(this.inWorkMax, this.inWork.size);
  }

  end(key, number) {
    this.inWork.delete(key);
    if (number < this.nextOf(key)) this.repeated++;
    else {
      this.next.set(key, number + 1);
      this.handled++;
    }
  }

  keysOf(who) {
    return [...this.inWork].filter(([, owner]) => owner === who).map(([key]) => key);
  }

  /** Of a consumer that was killed: nothing is in work there any more. */
  drop(who) {
    for (const [key, owner] of this.inWork) if (owner === who) this.inWork.delete(key);
  }

  async reached(handled, options) {
    const what = () => `${handled} records are handled, ${this.handled} so far`;
    await until('records are handled', () => this.handled >= handled, options).catch(() => {
      throw new Error(`timed out: ${what()}; ${this.faults.slice(0, 5).join('; ')}`);
    });
  }

  assertInOrder() {
    assert.equal(this.faults.length, 0, this.faults.slice(0, 5).join('; '));
  }

  assertOnce(handled) {
    this.assertInOrder();
    assert.deepEqual([this.handled, this.repeated], [handled, 0], 'handled and repeated');
  }
}
