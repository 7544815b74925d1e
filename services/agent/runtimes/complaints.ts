import { Fault, type FaultCode } from "#shared/fault/fault.ts";

type Meaning = (internal: string) => Fault;

function meaning(code: FaultCode, param: string | undefined, message: string): Meaning {
  return (internal) => new Fault(code, { message, param, internal });
}

const unsupported = (param: string): Meaning =>
  meaning("unsupported_parameter", param, `The runtime of this model does not support '${param}' with this request.`);
const noTools = "model_does_not_support_tools";
const notHeld = "The runtime of this model cannot hold an answer to a JSON schema of this request.";
const notContinued = "The model cannot go on from these last messages with the role 'assistant'.";
const noEffort = "The runtime of this model does not support this 'reasoning_effort'.";
const noImages = meaning("unsupported_value", "messages", "The model does not accept images.");
const noModel = meaning("model_not_found", "model", "The model does not exist on this machine.");

/** The fault for each error text of a model server, whatever status it came with. The first match wins. */
const meanings: readonly (readonly [RegExp, Meaning])[] = [
  [/does not support tools/i, meaning(noTools, "tools", "The model does not support tools.")],
  [
    /enable-auto-tool-choice|tool-call-parser|tools? .*requires? --jinja/i,
    meaning(noTools, "tools", "The runtime of this model was not set up for tools."),
  ],
  [/does not support (chat|generate)/i, meaning("unsupported_value", "model", "The model does not support chat.")],
  [
    /does not support (the )?embed|support embeddings|--embeddings?\b|pooling type/i,
    meaning("unsupported_value", "model", "The model does not embed."),
  ],
  [/matryoshka|changing output dimensions/i, unsupported("dimensions")],
  [
    /json schema error|grammar error|failed to (parse|initialize).*grammar|unsupported.*schema|invalid json schema/i,
    meaning("invalid_value", undefined, notHeld),
  ],
  [/suffix is (not|only)\b|does not support insert/i, unsupported("suffix")],
  [/logprobs.*not supported|not support.*logprobs/i, unsupported("logprobs")],
  [
    /reasoning_effort|does not support (thinking|reasoning)|invalid think/i,
    meaning("unsupported_value", "reasoning_effort", noEffort),
  ],
  [/image input|mmproj|multimodal|images? (is|are) not supported|does not support (images?|vision)/i, noImages],
  [/only 'text'/i, noImages],
  [/repository not found|cached snapshot folder|huggingface\.co|invalid model (identifier|name)/i, noModel],
  [/model\b.*\b(not found|does not exist|not exist)/i, noModel],
  [
    /assistant response prefill|cannot continue an assistant message|assistant messages at the end|continue_final_message/i,
    meaning("unsupported_value", "messages", notContinued),
  ],
];

/** Returns the fault for a server's error text, or undefined for a text without a known meaning. */
export function meaningOf(text: string, internal: string): Fault | undefined {
  return meanings.find(([pattern]) => pattern.test(text))?.[1](internal);
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

export function causeOf(text: string): string {
  return causes.find(([pattern]) => pattern.test(text))?.[1] ?? "its own log says more";
}
