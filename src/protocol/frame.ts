/**
 * Frames: int32 size, header, body. Which header goes with which body:
 *
 *   request v1   apiKey int16, apiVersion int16, correlationId int32, clientId nullable string
 *   request v2   the same and a tagged section, where the API's version is flexible
 *   response v0  correlationId int32
 *   response v1  the same and a tagged section, where the API's version is flexible
 *
 * ApiVersions is answered with header version 0 in every version, because its client does not yet
 * know what the broker speaks (KIP-511).
 */
import { ApiKey, isFlexible } from './api-keys.ts';
import { encodeInto } from './codec.ts';
import { Reader } from './reader.ts';
import type { Input, MessageTable } from './schema-types.ts';
import { Writer } from './writer.ts';

export interface RequestHead {
  readonly apiKey: number;
  readonly apiVersion: number;
  readonly correlationId: number;
  /** The empty string where the client sent null (Kafka's RequestHeader.parse). */
  readonly clientId: string;
  /** Where the body starts in the buffer. */
  readonly bodyStart: number;
}

export type ApiTable = MessageTable & { readonly apiKey: number };

export function requestHeaderVersion(apiKey: number, apiVersion: number): 1 | 2 {
  return isFlexible(apiKey, apiVersion) ? 2 : 1;
}

export function responseHeaderVersion(apiKey: number, apiVersion: number): 0 | 1 {
  return apiKey !== ApiKey.ApiVersions && isFlexible(apiKey, apiVersion) ? 1 : 0;
}

/**
 * Reads a request's header from `[start, end)`, the frame without its size. Neither the API nor
 * its version need be known: that is for the caller to judge. Throws `DecodeError`.
 */
export function decodeRequestHead(buffer: Buffer, start: number, end: number): RequestHead {
  const reader = new Reader(buffer, start, end);
  const apiKey = reader.int16();
  const apiVersion = reader.int16();
  const correlationId = reader.int32();
  const clientId = reader.stringOrNull() ?? '';
  if (requestHeaderVersion(apiKey, apiVersion) === 2) reader.skipTags();
  return { apiKey, apiVersion, correlationId, clientId, bodyStart: reader.position };
}

const writer = new Writer();

/** A whole response, size and header included, as pieces for one vectored write. */
export function encodeResponse<M extends ApiTable>(
  table: M,
  apiVersion: number,
  correlationId: number,
  value: Input<M>,
): Buffer[] {
  writer.reset();
  writer.beginFrame();
  writer.int32(correlationId);
  if (responseHeaderVersion(table.apiKey, apiVersion) === 1) writer.unsignedVarint(0);
  encodeInto(writer, table, apiVersion, value);
  writer.endFrame();
  return writer.finish();
}

/** A whole request, as a client or another broker sends it. */
export function encodeRequest<M extends ApiTable>(
  table: M,
  apiVersion: number,
  correlationId: number,
  clientId: string | null,
  value: Input<M>,
): Buffer[] {
  writer.reset();
  writer.beginFrame();
  writer.int16(table.apiKey);
  writer.int16(apiVersion);
  writer.int32(correlationId);
  writer.stringOrNull(clientId);
  if (requestHeaderVersion(table.apiKey, apiVersion) === 2) writer.unsignedVarint(0);
  encodeInto(writer, table, apiVersion, value);
  writer.endFrame();
  return writer.finish();
}
