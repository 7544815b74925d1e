import { finishReasons } from "#shared/answer/answer-event.ts";
import { decodeJson, endPayload, readJson, type EndPayload } from "#shared/protocol/frame-payload.ts";

const known: ReadonlySet<unknown> = new Set([...finishReasons, null]);

/**
 * Reads the payload of an end frame, or returns undefined if it is invalid. Every request has an end frame, so the form
 * that agents write is checked here. The schema checks only other forms.
 */
export function readEnd(bytes: Uint8Array): EndPayload | undefined {
  try {
    const told = readJson(bytes);
    if (isPlainEnd(told)) return told;
  } catch {
    return undefined;
  }
  return decodeJson(endPayload, bytes);
}

function isPlainEnd(told: unknown): told is EndPayload {
  if (!isObject(told) || !known.has(told["finishReason"])) return false;
  const { usage, timings } = told;
  if (!isObject(timings)) return false;
  const { queuedMs, firstTokenMs, totalMs } = timings;
  if (!Number.isFinite(queuedMs) || !Number.isFinite(totalMs)) return false;
  if (firstTokenMs !== null && !Number.isFinite(firstTokenMs)) return false;
  return usage === null || (isObject(usage) && isUsage(usage));
}

function isUsage(usage: Record<string, unknown>): boolean {
  const { promptTokens, completionTokens, cachedTokens = 0, reasoningTokens = 0 } = usage;
  return isCount(promptTokens) && isCount(completionTokens) && isCount(cachedTokens) && isCount(reasoningTokens);
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
