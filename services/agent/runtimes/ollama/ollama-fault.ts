import { Fault } from "#shared/fault/fault.ts";
import { ContextOverflow, type Overflow } from "../context-overflow.ts";

/** The fault for each error text of Ollama, whatever status it came with. */
const meanings: readonly { pattern: RegExp; fault: (internal: string) => Fault }[] = [
  {
    pattern: /does not support tools/i,
    fault: (internal) =>
      new Fault("model_does_not_support_tools", {
        message: "The model does not support tools.",
        param: "tools",
        internal,
      }),
  },
  {
    pattern: /does not support thinking|invalid think/i,
    fault: (internal) =>
      new Fault("unsupported_value", {
        message: "The model does not support this 'reasoning_effort'.",
        param: "reasoning_effort",
        internal,
      }),
  },
  {
    pattern: /does not support embed/i,
    fault: (internal) =>
      new Fault("unsupported_value", { message: "The model does not embed.", param: "model", internal }),
  },
  {
    pattern: /does not support insert/i,
    fault: (internal) =>
      new Fault("unsupported_parameter", {
        message: "The model does not support 'suffix'.",
        param: "suffix",
        internal,
      }),
  },
  {
    pattern: /does not support (chat|generate)/i,
    fault: (internal) =>
      new Fault("unsupported_value", { message: "The model does not support chat.", param: "model", internal }),
  },
  {
    pattern: /image input is not supported|does not support multimodal/i,
    fault: (internal) =>
      new Fault("unsupported_value", { message: "The model does not accept images.", param: "messages", internal }),
  },
  {
    pattern: /assistant messages at the end|cannot continue an assistant message/i,
    fault: (internal) =>
      new Fault("unsupported_value", {
        message: "The model cannot go on from these last messages with the role 'assistant'.",
        param: "messages",
        internal,
      }),
  },
  {
    pattern: /logprobs is not supported with tools/i,
    fault: (internal) =>
      new Fault("unsupported_parameter", {
        message: "The runtime of this model does not support 'logprobs' together with 'tools'.",
        param: "logprobs",
        internal,
      }),
  },
  {
    pattern: /json schema error|failed to (parse|initialize).*grammar|invalid json schema/i,
    fault: (internal) =>
      new Fault("invalid_value", {
        message: "The runtime of this model cannot hold an answer to a JSON schema of this request.",
        internal,
      }),
  },
];

const tooLong = /context (length|size|window)|exceed_context_size|input length/i;

/**
 * Returns the fault for an answer of Ollama that is not a success. Ollama's own text may hold paths, addresses and
 * parts of the prompt, and stays internal.
 */
export function ollamaStatusFault(answer: { status: number; text: string }): Fault {
  const { status } = answer;
  const internal = `Ollama answered ${status} (${causeOf(answer.text)})`;
  if (status === 404) {
    return new Fault("model_not_found", {
      message: "The model does not exist on this machine.",
      param: "model",
      internal,
    });
  }
  if (status === 503 || status === 429) {
    return new Fault("server_is_overloaded", { message: "The runtime is overloaded.", internal });
  }
  // Ollama reports a refusal of its engine as its own failure.
  const meaning = meanings.find(({ pattern }) => pattern.test(answer.text));
  if (meaning !== undefined) return meaning.fault(internal);
  if (status < 500 && tooLong.test(answer.text)) return new ContextOverflow(overflowIn(answer.text), internal);
  if (status === 400) return new Fault("bad_request", { message: "The runtime refused the request.", internal });
  return new Fault("upstream_error", { message: "The runtime failed.", internal });
}

/**
 * Reads the two numbers of a prompt that is too long from the text of Ollama's engine. That text is llama-server's own
 * error as JSON, or a sentence of the MLX engine. Ollama's own text has no numbers.
 */
function overflowIn(text: string): Overflow {
  const plain = text.replaceAll("\\", "");
  const [prompt, window] = [/"n_prompt_tokens"\s*:\s*(\d+)/.exec(plain)?.[1], /"n_ctx"\s*:\s*(\d+)/.exec(plain)?.[1]];
  if (prompt !== undefined && window !== undefined) {
    return { promptTokens: Number(prompt), windowTokens: Number(window) };
  }
  const match = /\((\d+) tokens\) exceeds .*?\((\d+) tokens\)/.exec(plain);
  return match === null ? {} : { promptTokens: Number(match[1]), windowTokens: Number(match[2]) };
}

/** Returns the fault for an error that Ollama reported in the middle of an answer. */
export function ollamaStreamFault(text: string): Fault {
  return new Fault("upstream_error", {
    message: "The runtime failed during its answer.",
    internal: `Ollama reported an error (${causeOf(text)})`,
  });
}

/** Causes that operators can act on. Ollama's own text is not kept, because it may quote the prompt. */
const causes: readonly [RegExp, string][] = [
  [/out of memory|requires more (system )?memory|cudaMalloc/i, "out of memory"],
  [/unexpectedly stopped|has terminated|connection reset|unexpected EOF/i, "its model runner stopped"],
  [/load(ing)? model|failed to load/i, "a model could not be loaded"],
  [/not found/i, "not found"],
  [/unauthorized|disabled/i, "not allowed there"],
];

function causeOf(text: string): string {
  return causes.find(([pattern]) => pattern.test(text))?.[1] ?? "its own log says more";
}
