import { produce } from './00-produce.ts';
import { fetch } from './01-fetch.ts';
import { listOffsets } from './02-list-offsets.ts';
import { metadata } from './03-metadata.ts';
import { findCoordinator } from './10-find-coordinator.ts';
import { apiVersions } from './18-api-versions.ts';
import { initProducerId } from './22-init-producer-id.ts';
import type { Handler } from './handler.ts';

/** Every API that is served. ApiVersions tells clients of exactly these. */
export const handlers: ReadonlyMap<number, Handler> = new Map(
  [produce, fetch, listOffsets, metadata, findCoordinator, apiVersions, initProducerId].map(
    (handler) => [handler.apiKey, handler],
  ),
);
