import { encodeGroupImageInSlices, type GroupImage } from '../../src/groups/group-image.ts';

/** All slices in one go. */
export function encodeGroupImage(image: GroupImage): Buffer {
  const slices = encodeGroupImageInSlices(image);
  for (;;) {
    const { done, value } = slices.next();
    if (done === true) return value;
  }
}
