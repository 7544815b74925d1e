import type { Overflow } from "../context-overflow.ts";

/**
 * Wordings by which servers report that a prompt does not fit, each server's newest first. Some servers count the
 * answer's limit in, so the prompt itself may be shorter than the window.
 */
const sayings: readonly RegExp[] = [
  // vLLM
  /context length is (?<window>\d+) tokens\..*?contains (?<least>at least )?(?<prompt>\d+) input tokens/is,
  /passed (?<prompt>\d+) input tokens.*?context length is only (?<window>\d+)/is,
  /context length is (?<window>\d+) tokens\..*?\((?<prompt>\d+) in the (messages|prompt)/is,
  /context length is (?<window>\d+) tokens\..*?(requested|resulted in|has) (?<prompt>\d+) tokens/is,
  /prompt \(length (?<prompt>\d+)\) is longer than the maximum model length of (?<window>\d+)/is,
  // llama-cpp-python
  /context length is (?<window>\d+) tokens, however.*?\((?<prompt>\d+) in your prompt/is,
  // llama-server
  /request \((?<prompt>\d+) tokens\) exceeds the available context size \((?<window>\d+) tokens\)/is,
  /input \((?<prompt>\d+) tokens\) is too large to process.*?batch size: (?<window>\d+)/is,
  // LM Studio
  /keep the first (?<prompt>\d+) tokens.*?context length of only (?<window>\d+)/is,
  /n_keep: (?<prompt>\d+)\s*>=\s*n_ctx: (?<window>\d+)/is,
  // Without the length of the prompt
  /context length (is only|of( only)?|is) (?<window>\d+)/is,
  /context (length|size|window).*?(exceed|too (long|large|small)|overflow|not enough)/is,
  /exceed(s|ed|_)?.*?context.?(length|size|window)|longer than the maximum model length|prompt is too long/is,
];

/** Returns the overflow that a server's error reports, or undefined for another error. */
export function overflowIn(text: string, error: Readonly<Record<string, unknown>>): Overflow | undefined {
  const [prompt, window] = [error["n_prompt_tokens"], error["n_ctx"]];
  if (typeof prompt === "number" && typeof window === "number") return { promptTokens: prompt, windowTokens: window };
  if (error["type"] === "exceed_context_size_error" || error["code"] === "context_length_exceeded") {
    return numbersIn(text) ?? {};
  }
  return numbersIn(text);
}

function numbersIn(text: string): Overflow | undefined {
  for (const saying of sayings) {
    const told = saying.exec(text);
    if (told === null) continue;
    const { prompt, window, least } = told.groups ?? {};
    // A server that stops counting at the end of the window does not know the prompt's length.
    const isUncounted = least !== undefined && Number(prompt) > Number(window);
    return {
      ...(prompt !== undefined && !isUncounted && { promptTokens: Number(prompt) }),
      ...(window !== undefined && { windowTokens: Number(window) }),
    };
  }
  return undefined;
}
