import { codecs } from '../../src/core/codecs.ts';
import {
  type BatchOpener,
  type BatchToOpen,
  type CancelOpening,
  type Opening,
  openBatch,
  unlimitedAllowance,
} from '../../src/replica/open-batch.ts';

interface Call {
  readonly batches: readonly BatchToOpen[];
  readonly done: (result: Opening) => void;
}

/** Opens batches when it is told to. */
export class CommandOpener implements BatchOpener {
  /** What waits, in the order in which it came. */
  readonly calls: Call[] = [];
  /** All that ever came. */
  count = 0;

  open(batches: readonly BatchToOpen[], done: (result: Opening) => void): CancelOpening {
    const call = { batches, done };
    this.calls.push(call);
    this.count++;
    return () => void this.calls.splice(this.calls.indexOf(call), 1);
  }

  /** Opens what waits at this place. */
  release(at = 0): void {
    const [call] = this.calls.splice(at, 1);
    call?.done(call.batches.map((batch) => openBatch(batch, codecs, unlimitedAllowance())!));
  }

  fail(error: Error): void {
    this.calls.shift()?.done(error);
  }

  async stop(): Promise<void> {
    for (const { done } of this.calls.splice(0)) done('stopped');
  }
}
