import type { AnswerEvent, Usage } from "#shared/answer/answer-event.ts";

/** The metadata of an answer, in every shape. */
export interface AnswerHead {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  /** True if the client asked for usage as a chunk of its own; streams only. */
  readonly includeUsage: boolean;
}

/** Renders the answer events of one answer as the bytes for its client. */
export interface AnswerRenderer {
  /**
   * Returns the bytes for these events; empty when the shape writes nothing before the end. Throws a Fault when the
   * events are invalid, or when the answer exceeds a limit.
   */
  push(events: readonly AnswerEvent[]): Uint8Array;
  /** Returns the last bytes, after the last event. */
  end(): Uint8Array;
}

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
