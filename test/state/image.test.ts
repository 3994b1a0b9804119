import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { imageVersionMax } from '../../src/state/image.ts';
import { type AppliedEntry, StateMachine } from '../../src/state/state-machine.ts';
import { RandomEntries } from './random-entries.ts';

function restored(image: Buffer): StateMachine {
  const state = new StateMachine();
  state.restore(image);
  return state;
}

test('a restored image gives the same image', () => {
  for (let seed = 1; seed <= 40; seed++) {
    const state = new StateMachine();
    const entries = new RandomEntries(seed, state);
    for (let i = 0; i < 150; i++) state.apply(entries.next());
    const image = state.image();
    assert.ok(restored(image).image().equals(image), `seed ${seed}`);
  }
});

test('a snapshot and the entries after it give the state that all entries give', () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = seededRandom(seed);
    const live = new StateMachine();
    const made = new RandomEntries(seed, live);
    const entries: AppliedEntry[] = [];
    const images: Buffer[] = [live.image()];
    for (let i = 0; i < 150; i++) {
      const entry = made.next();
      live.apply(entry);
      entries.push(entry);
      images.push(live.image());
    }
    for (let i = 0; i < 5; i++) {
      const from = Math.floor(random.next() * images.length);
      const other = restored(images[from]!);
      for (const entry of entries.slice(from)) other.apply(entry);
      assert.ok(other.image().equals(live.image()), `seed ${seed}, from entry ${from}`);
    }
  }
});

test('an image written in slices is that of the moment at which it was begun', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed);
    const state = new StateMachine();
    const entries = new RandomEntries(seed, state);
    for (let i = 0; i < 200; i++) state.apply(entries.next());
    const expected = state.image();
    const writer = state.beginImage();
    // Whether a slice comes early or late decides what is written by it and what by the changes.
    for (let i = Math.floor(random.next() * 100); i > 0; i--) state.apply(entries.next());
    while (writer.writeSlice()) state.apply(entries.next());
    state.endImage();
    state.apply(entries.next());
    assert.ok(restored(writer.finish()).image().equals(expected), `seed ${seed}`);
  }
});

test('an image of many partitions takes several slices', () => {
  const state = new StateMachine();
  const entries = new RandomEntries(5, state);
  while (state.topics.partitions.next < 20_000) state.apply(entries.next());
  const expected = state.image();
  const writer = state.beginImage();
  let slices = 1;
  while (writer.writeSlice()) {
    state.apply(entries.next());
    slices++;
  }
  state.endImage();
  assert.ok(slices > 2);
  assert.ok(restored(writer.finish()).image().equals(expected));
});

test('an image or a part of an unknown version stops the start', () => {
  const image = new StateMachine().image();
  const newer = Buffer.from(image);
  newer[0] = imageVersionMax + 1;
  assert.throws(() => restored(newer), { code: 'JOURNAL_VERSION_UNKNOWN' });
  const withMore = Buffer.concat([image, Buffer.from([99])]);
  assert.throws(() => restored(withMore), { code: 'JOURNAL_VERSION_UNKNOWN' });
});
