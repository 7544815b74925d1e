import { Fault, type FaultCode } from "#shared/fault/fault.ts";
import { contentText, type ChatBody, type EmbedBody, type TextToContinue } from "#shared/protocol/job-bodies.ts";

/** An answer of a runtime with a status other than success. */
export interface RuntimeRefusal {
  readonly status: number;
  /** The beginning of the answer's text, as far as it is read. */
  readonly text: string;
}

/** Known facts of a prompt that does not fit. A runtime may report both numbers, one or neither. */
export interface Overflow {
  readonly promptTokens?: number | undefined;
  readonly windowTokens?: number | undefined;
}

/** A runtime's refusal of a prompt that is longer than the window, with the numbers that the runtime reported. */
export class ContextOverflow extends Fault {
  readonly overflow: Overflow;

  constructor(overflow: Overflow, internal: string) {
    super("context_length_exceeded", { message: "The prompt is longer than the window.", param: "messages", internal });
    this.overflow = overflow;
  }
}

/**
 * Wordings by which servers report that a prompt does not fit, each server's newest first. Some servers count the
 * answer's limit in, so the prompt itself may be shorter than the window.
 */
const wordings: readonly RegExp[] = [
  // vLLM
  /context length is (?<window>\d+) tokens\..*?contains (?<least>at least )?(?<prompt>\d+) input tokens/is,
  /passed (?<prompt>\d+) input tokens.*?context length is only (?<window>\d+)/is,
  /context length is (?<window>\d+) tokens\..*?\((?<prompt>\d+) in the (messages|prompt)/is,
  /context length is (?<window>\d+) tokens\..*?(requested|resulted in|has) (?<prompt>\d+) tokens/is,
  /prompt \(length (?<prompt>\d+)\) is longer than the maximum model length of (?<window>\d+)/is,
  // llama-cpp-python
  /context length is (?<window>\d+) tokens, however.*?\((?<prompt>\d+) in your prompt/is,
  // llama-server, also below Ollama, and Ollama's MLX engine
  /n_prompt_tokens\W+(?<prompt>\d+)(?!\d).*?n_ctx\W+(?<window>\d+)/is,
  /\((?<prompt>\d+) tokens\) exceeds .*?\((?<window>\d+) tokens\)/is,
  /input \((?<prompt>\d+) tokens\) is too large to process.*?batch size: (?<window>\d+)/is,
  // LM Studio
  /keep the first (?<prompt>\d+) tokens.*?context length of only (?<window>\d+)/is,
  /n_keep: (?<prompt>\d+)\s*>=\s*n_ctx: (?<window>\d+)/is,
  // Without the length of the prompt
  /context length (is only|of( only)?|is) (?<window>\d+)/is,
  /context (length|size|window).*?(exceed|too (long|large|small)|overflow|not enough)/is,
  /exceed(s|ed|_)?.*?context.?(length|size|window)|longer than the maximum model length|prompt is too long/is,
];

/** Returns the overflow that an error text reports, with the numbers in it, or undefined for another text. */
export function overflowInText(text: string): Overflow | undefined {
  for (const wording of wordings) {
    const match = wording.exec(text);
    if (match === null) continue;
    const { prompt, window, least } = match.groups ?? {};
    // A server that stops counting at the end of the window does not know the prompt's length.
    const isUncounted = least !== undefined && Number(prompt) > Number(window);
    return {
      ...(prompt !== undefined && !isUncounted && { promptTokens: Number(prompt) }),
      ...(window !== undefined && { windowTokens: Number(window) }),
    };
  }
  return undefined;
}

/** The part of a request that holds its prompt: messages, texts to embed or to rank, or a text to continue. */
type Prompted = ChatBody | TextToContinue | EmbedBody | { readonly query: string; readonly documents: string[] };

/** Subject of the overflow message, by the field of the request that was too long. */
const takers = {
  messages: "your messages resulted in",
  input: "a text in 'input' resulted in",
  prompt: "a text in 'prompt' resulted in",
  documents: "the query with a text in 'documents' resulted in",
} as const;

function promptField(body: Prompted): keyof typeof takers {
  if ("messages" in body) return "messages";
  if ("documents" in body) return "documents";
  return "input" in body ? "input" : "prompt";
}

/**
 * Returns an overflow as the client gets it, always with both numbers, and any other error as it is. A prompt length
 * that the runtime did not report is estimated, and the message says so. Clients recognise an overflow by this wording
 * of OpenAI, and shorten their conversations.
 *
 * `tokensMax` is the token limit of the answer, for a runtime that counts it in. A prompt may then fit and still leave
 * less room than this limit.
 */
export function tellOverflow(
  error: unknown,
  { body, contextWindow }: { readonly body: Prompted; readonly contextWindow: number },
  tokensMax?: number,
): unknown {
  if (!(error instanceof ContextOverflow)) return error;
  const { promptTokens, windowTokens = contextWindow } = error.overflow;
  const told = promptTokens ?? `about ${Math.max(estimatePromptTokens(body), windowTokens + 1)} (estimated)`;
  const leavesNoRoom = tokensMax !== undefined && promptTokens !== undefined && promptTokens <= windowTokens;
  const end = leavesNoRoom ? `, which leaves no room for the ${tokensMax} of 'max_tokens'.` : ".";
  const param = promptField(body);
  const message = `This model's maximum context length is ${windowTokens} tokens on this machine. However, ${takers[param]} ${told} tokens${end}`;
  return new Fault("context_length_exceeded", { message, param, internal: error.internal });
}

/** Rules of thumb for estimates: four bytes of text for a token, and the tokens of an image with most models. */
const bytesPerToken = 4;
const tokensPerImage = 768;

/** Estimates the tokens of a prompt; of several texts to embed or to rank, those of the longest. */
export function estimatePromptTokens(body: Prompted): number {
  if ("prompt" in body) return tokensIn(Buffer.byteLength(body.prompt));
  if ("documents" in body)
    return estimatePromptTokens({ input: [body.query] }) + estimatePromptTokens({ input: body.documents });
  if ("input" in body) return tokensIn(Math.max(...body.input.map((text) => Buffer.byteLength(text))));
  let bytes = body.tools === undefined ? 0 : Buffer.byteLength(JSON.stringify(body.tools));
  let images = 0;
  for (const { content } of body.messages) {
    bytes += Buffer.byteLength(contentText(content));
    if (Array.isArray(content)) images += content.filter(({ type }) => type === "image_url").length;
  }
  return tokensIn(bytes) + images * tokensPerImage;
}

function tokensIn(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}

type Meaning = (internal?: string) => Fault;

function meaning(code: FaultCode, param: string | undefined, message: string): Meaning {
  return (internal) => new Fault(code, { message, param, internal });
}

const unsupported = (param: string): Meaning =>
  meaning("unsupported_parameter", param, `The runtime of this model does not support '${param}' with this request.`);
const unfit = (param: string, message: string): Meaning => meaning("unsupported_value", param, message);
const noTools = "model_does_not_support_tools";
const notSetUp = meaning(noTools, "tools", "The runtime of this model was not set up for tools.");
const notHeld = "The runtime of this model cannot hold an answer to a JSON schema of this request.";
const notContinued = "The model cannot go on from these last messages with the role 'assistant'.";
const noEffort = "The runtime of this model does not support this 'reasoning_effort'.";
const noEmbedding = unfit("model", "The model does not embed.");
const noRanking = unfit("model", "The model does not rerank.");
const noImages = unfit("messages", "The model does not accept images.");

export const modelNotFound = meaning("model_not_found", "model", "The model does not exist on this machine.");

/** The fault for each error text of a model server, whatever status it came with. The first match wins. */
const meanings: readonly (readonly [RegExp, Meaning])[] = [
  [/does not support tools/i, meaning(noTools, "tools", "The model does not support tools.")],
  [/enable-auto-tool-choice|tool-call-parser|tools? .*requires? --jinja/i, notSetUp],
  [/does not support (chat|generate)/i, unfit("model", "The model does not support chat.")],
  [/does not support (the )?embed|support embeddings|--embeddings?\b|pooling type/i, noEmbedding],
  [/does not support (the )?(re-?rank|score)|support reranking|--reranking\b/i, noRanking],
  [/matryoshka|changing output dimensions/i, unsupported("dimensions")],
  [
    /json schema error|grammar error|failed to (parse|initialize).*grammar/i,
    meaning("invalid_value", undefined, notHeld),
  ],
  [/unsupported.*schema|invalid json schema/i, meaning("invalid_value", undefined, notHeld)],
  [/suffix is (not|only)\b|does not support insert/i, unsupported("suffix")],
  [/logprobs.*not supported|not support.*logprobs/i, unsupported("logprobs")],
  [/reasoning_effort|does not support (thinking|reasoning)|invalid think/i, unfit("reasoning_effort", noEffort)],
  [/image input|mmproj|multimodal|images? (is|are) not supported|does not support (images?|vision)/i, noImages],
  [/only 'text'/i, noImages],
  [/repository not found|cached snapshot folder|huggingface\.co|invalid model (identifier|name)/i, modelNotFound],
  [/model\b.*\b(not found|does not exist|not exist)/i, modelNotFound],
  [/assistant response prefill|cannot continue an assistant message/i, unfit("messages", notContinued)],
  [/assistant messages at the end|continue_final_message/i, unfit("messages", notContinued)],
];

/** Returns the fault for a server's error text, or undefined for a text without a known meaning. */
export function meaningOf(text: string, internal: string): Fault | undefined {
  return meanings.find(([pattern]) => pattern.test(text))?.[1](internal);
}

/** Returns the fault for status 401 or 403. Undefined for any other status. */
export function agentRefused(status: number, internal: string): Fault | undefined {
  if (status !== 401 && status !== 403) return undefined;
  return new Fault("upstream_error", {
    message: "The runtime refused the agent of this machine.",
    internal: `${internal}: it wants an API key, which TRUNKLINE_RUNTIME_KEY gives it`,
  });
}

/** Causes that operators can act on. The server's own text is not kept, because it may quote the prompt. */
const causes: readonly (readonly [RegExp, string])[] = [
  [/out of memory|requires more (system )?memory|cudaMalloc|insufficient (system )?resources/i, "out of memory"],
  [
    /crashed|terminated|unexpectedly stopped|engine.*(dead|stopped)|connection reset|exit code|unexpected EOF/i,
    "its model runner stopped",
  ],
  [/load(ing)? (the )?model|failed to load|not loaded/i, "a model could not be loaded"],
  [/grammar|json schema/i, "its grammar"],
  [/template|jinja/i, "the model's template"],
  [/api.?key|unauthori[sz]ed|forbidden|disabled/i, "not allowed there"],
  [/not found/i, "not found"],
];

function knownCause(text: string): string | undefined {
  return causes.find(([pattern]) => pattern.test(text))?.[1];
}

export function causeOf(text: string): string {
  return knownCause(text) ?? "its own log says more";
}

/** Returns the fault for a failure of a runtime. It tells the cause, if that is known. */
export function runtimeFailed(text: string, internal: string): Fault {
  const cause = knownCause(text);
  const message = cause === undefined ? "The runtime failed." : `The runtime failed: ${cause}.`;
  return new Fault("upstream_error", { message, internal });
}

/** Error codes of undici and the kernel for an established connection that broke. */
const brokenOff = new Set<unknown>(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

export function hasBrokenOff(error: unknown): boolean {
  return error instanceof Error && "code" in error && brokenOff.has(error.code);
}

/** Returns the fault for a connection that broke, or that never came to be. */
export function silenceFault(error: unknown, of: { hasAnswered: boolean; isRetried: boolean }): Fault {
  return new Fault(of.hasAnswered ? "upstream_error" : "runtime_offline", {
    message: of.hasAnswered ? "The runtime broke off its answer." : "The runtime does not answer.",
    internal: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    died: of.hasAnswered || of.isRetried || hasBrokenOff(error) ? "runtime" : undefined,
    cause: error,
  });
}

/** Returns the fault for a body with a line that no stream of events has. */
export function noEvents(line: string): Fault {
  const looksLike = line.trimStart().startsWith("<") ? "HTML" : line.trimStart().startsWith("{") ? "JSON" : "text";
  const message = "The runtime did not answer with server-sent events.";
  return new Fault("upstream_error", { message, internal: `${looksLike} where server-sent events were asked for` });
}

export function tooLong(what: "a line" | "an event", bytesMax: number): Fault {
  return new Fault("upstream_error", {
    message: `The runtime sent ${what} longer than ${bytesMax} bytes (runtimeLineBytesMax).`,
  });
}
