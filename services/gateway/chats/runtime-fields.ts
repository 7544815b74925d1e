import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { chatBody, structuredOutputs, type ChatBody, type RankBody } from "#shared/protocol/job-bodies.ts";
import { readJsonObject } from "../http/read-json.ts";
import { type FieldsOf, givenFields, assertSchemaSize, invalidValue } from "../requests/request-fields.ts";

const inner = chatBody.shape;

/** Sampling fields that runtimes know and OpenAI does not. `repetition_penalty` is another name of `repeat_penalty`. */
export const runtimeSampling = {
  top_k: z.int().min(-1).nullish(),
  min_p: inner.min_p.nullable(),
  typical_p: inner.typical_p.nullable(),
  repeat_penalty: inner.repeat_penalty.nullable(),
  repetition_penalty: inner.repeat_penalty.nullable(),
  stop_token_ids: inner.stop_token_ids.nullable(),
  ignore_eos: inner.ignore_eos.nullable(),
  min_tokens: inner.min_tokens.nullable(),
};

const grammar = inner.grammar.unwrap();
const [byRegex, byChoice] = structuredOutputs.options;
const byGrammar = z.strictObject({ grammar });
const byJson = z.strictObject({ json: z.union([z.record(z.string(), z.unknown()), z.string()]) });

/** One rule that the whole answer has to keep to, as vLLM's clients write it. */
const form = z.union([byJson, byRegex, byChoice, byGrammar]);

/** Fields of chats that runtimes know and OpenAI does not. The fields `guided_…` are older names of vLLM's. */
export const runtimeChatFields = {
  chat_template_kwargs: inner.chat_template_kwargs.nullable(),
  think: z.union([z.boolean(), z.enum(["low", "medium", "high", "max"])]).nullish(),
  grammar: inner.grammar.nullable(),
  structured_outputs: form.nullish(),
  guided_json: byJson.shape.json.nullish(),
  guided_regex: byRegex.shape.regex.nullish(),
  guided_choice: byChoice.shape.choice.nullish(),
  guided_grammar: inner.grammar.nullable(),
};

/** Fields for machines, and the client's own names of those that it sent under another name. */
export interface Renamed {
  readonly fields: Partial<ChatBody>;
  readonly sentNames: SentNames;
}
export type SentNames = Partial<Record<keyof ChatBody | keyof RankBody, string>>;

/** The parts of a request of OpenAI's that the answer needs, of chats and of legacy completions. */
export interface CompletionForm {
  /** True if the client asked for usage as a chunk of its own; streams only. */
  readonly includeUsage: boolean;
  /** True if usage is to tell the cost. */
  readonly tellsCost: boolean;
  readonly sentNames: SentNames;
}

/** Returns the sampling fields in the form that machines get. For `top_k`, 0 and -1 both mean all tokens. */
export function innerSampling(request: FieldsOf<typeof runtimeSampling>): Renamed {
  const { top_k: topK, repeat_penalty: penalty, repetition_penalty: synonym, stop_token_ids: stops } = request;
  const { min_p, typical_p, ignore_eos, min_tokens } = request;
  if (typeof penalty === "number" && typeof synonym === "number" && penalty !== synonym) {
    const message = "'repeat_penalty' and 'repetition_penalty' differ; send only one of them.";
    throw invalidValue("repeat_penalty", message);
  }
  const repeat_penalty = penalty ?? synonym;
  const top_k = typeof topK === "number" ? Math.max(topK, 0) : undefined;
  const stop_token_ids = stops?.length === 0 ? undefined : stops;
  return {
    fields: givenFields({ top_k, min_p, typical_p, repeat_penalty, stop_token_ids, ignore_eos, min_tokens }),
    sentNames: typeof synonym === "number" ? { repeat_penalty: "repetition_penalty" } : {},
  };
}

type ChatFields = FieldsOf<typeof runtimeSampling & typeof runtimeChatFields> & {
  readonly response_format?: { readonly type: string } | null | undefined;
  readonly reasoning_effort?: string | null | undefined;
};

/** Returns the fields of chats in the form that machines get, together with those of OpenAI's that they become. */
export function innerChatFields(request: ChatFields): Renamed {
  const sampling = innerSampling(request);
  const rule = innerForm(request);
  const thinking = innerThinking(request);
  return {
    fields: { ...sampling.fields, ...rule.fields, ...thinking.fields },
    sentNames: { ...sampling.sentNames, ...rule.sentNames, ...thinking.sentNames },
  };
}

/** Every JSON schema becomes a `response_format`, which most runtimes honour. */
function innerForm(request: ChatFields): Renamed {
  const { guided_json: json, guided_regex: regex, guided_choice: choice, guided_grammar: rules } = request;
  const forms = Object.entries({
    grammar: request.grammar && { grammar: request.grammar },
    structured_outputs: request.structured_outputs,
    guided_json: json && { json },
    guided_regex: regex && { regex },
    guided_choice: choice && { choice },
    guided_grammar: rules && { grammar: rules },
  }).flatMap(([param, rule]) => (rule ? [[param, rule] as const] : []));
  const [only, second] = forms;
  if (only === undefined) return { fields: {}, sentNames: {} };
  const [param, wanted] = only;
  const format = request.response_format;
  const other = second?.[0] ?? (format && format.type !== "text" ? "response_format" : undefined);
  if (other !== undefined) {
    throw invalidValue(param, `'${param}' and '${other}' both rule the form of the answer; send only one of them.`);
  }
  if ("grammar" in wanted) return { fields: { grammar: wanted.grammar }, sentNames: { grammar: param } };
  if (!("json" in wanted)) return { fields: { structured_outputs: wanted }, sentNames: { structured_outputs: param } };
  const schema = typeof wanted.json === "string" ? parsedSchema(wanted.json, param) : wanted.json;
  assertSchemaSize(schema, param);
  return {
    fields: { response_format: { type: "json_schema", json_schema: { name: "answer", schema } } },
    sentNames: { response_format: param },
  };
}

function parsedSchema(text: string, param: string): Record<string, unknown> {
  try {
    return readJsonObject(Buffer.from(text));
  } catch {
    throw invalidValue(param, `'${param}' must hold a JSON schema, which is an object.`);
  }
}

/**
 * Returns the thinking that a client asks for by a runtime's own field. Thinking that is switched off becomes an
 * effort, which every runtime knows. A template's other arguments are left to the runtimes that have them.
 */
function innerThinking({ chat_template_kwargs: kwargs, think, reasoning_effort: effort }: ChatFields): Renamed {
  const args = kwargs ?? {};
  assertArguments(args);
  const switches = Object.entries(args).filter(([name]) => thinkingSwitches.has(name));
  const isOnlyOff =
    switches.length > 0 && switches.length === Object.keys(args).length && !switches.some(([, on]) => on);
  const byThink = think === false ? "none" : typeof think === "string" ? think : undefined;
  const wanted = byThink ?? (isOnlyOff ? "none" : undefined);
  const param = byThink === undefined ? "chat_template_kwargs" : "think";
  if (wanted !== undefined && typeof effort === "string" && effort !== wanted) {
    throw invalidValue(param, `'${param}' and 'reasoning_effort' differ; send only 'reasoning_effort'.`);
  }
  const passedOn = isOnlyOff ? {} : think === true ? { enable_thinking: true, thinking: true, ...args } : args;
  return {
    fields: {
      ...(wanted !== undefined && { reasoning_effort: wanted }),
      ...(Object.keys(passedOn).length > 0 && { chat_template_kwargs: passedOn }),
    },
    sentNames: {
      ...(wanted !== undefined && { reasoning_effort: param }),
      ...(kwargs == null && think === true && { chat_template_kwargs: "think" }),
    },
  };
}

/** Arguments by which templates switch thinking on or off. */
const thinkingSwitches: ReadonlySet<string> = new Set(["enable_thinking", "thinking"]);

/** Names that the template's caller sets. As arguments, they would replace the template or break the runtime. */
const reservedArguments: ReadonlySet<string> = new Set([
  "add_generation_prompt",
  "chat_template",
  "continue_final_message",
  "conversation",
  "documents",
  "max_length",
  "messages",
  "padding",
  "return_assistant_tokens_mask",
  "return_dict",
  "return_tensors",
  "tokenize",
  "tokenizer_kwargs",
  "tools",
  "truncation",
]);

function assertArguments(args: NonNullable<ChatBody["chat_template_kwargs"]>): void {
  const reserved = Object.keys(args).find((name) => reservedArguments.has(name));
  if (reserved === undefined) return;
  const param = `chat_template_kwargs.${reserved}`;
  const message = `'${param}' is set by the runtime itself and cannot be an argument of the template.`;
  throw new Fault("unsupported_parameter", { message, param });
}

/** The names of the fields of this file. */
export const runtimeFields: ReadonlySet<string> = new Set(Object.keys({ ...runtimeSampling, ...runtimeChatFields }));

/** Leaves out the fields of this file, which `innerSampling` and `innerChatFields` return in another form. */
export function withoutRuntimeFields(request: object): object {
  return Object.fromEntries(Object.entries(request).filter(([field]) => !runtimeFields.has(field)));
}

/** Renames the field in a machine's fault to the client's own name. */
export function faultWithSentNames(fault: Fault, sentNames: SentNames): Fault {
  const names = Object.entries(sentNames).map(([field, own]) => [new RegExp(`^${field}(?:[.[].*)?$`), own] as const);
  return fault.withFieldOf(names);
}
