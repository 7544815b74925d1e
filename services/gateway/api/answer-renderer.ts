import type { Usage } from "#shared/answer/answer-event.ts";
import { faultBody } from "../http/fault-body.ts";
import type { StreamEnds } from "../jobs/write-stream.ts";

/** Returns usage in OpenAI's format, with details only where the runtime reports them. */
export function tokenUsage(usage: Usage): Record<string, unknown> {
  const { promptTokens, completionTokens, cachedTokens, reasoningTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: cachedTokens === undefined ? undefined : { cached_tokens: cachedTokens },
    completion_tokens_details: reasoningTokens === undefined ? undefined : { reasoning_tokens: reasoningTokens },
  };
}

/**
 * The last bytes of a stream of chunks. Official clients take a stream that merely stops for a success, so a failure is
 * sent as an error event.
 */
export const endsOfChunks: StreamEnds = {
  whole: Buffer.from("data: [DONE]\n\n"),
  failed: (fault) => Buffer.from(`data: ${JSON.stringify(faultBody(fault))}\n\n`),
};
