import type { FunctionName } from "./inner-tools.ts";
import { isOwnTool, type OwnTool, type ResponseRequest } from "./response-schema.ts";

/** The options of rendering a response, and the request fields that the response repeats. */
export interface ResponseTerms {
  /**
   * The kind of item that carries the reasoning. A client that asks for a summary reads only the summary, and gets the
   * full reasoning in it.
   */
  readonly thoughts: "reasoning" | "summary";
  /** The functions in a namespace, by the joined names that machines get. */
  readonly namespaced: Readonly<Record<string, FunctionName>>;
  /**
   * The repeated fields of the JSON object, serialized once because they are sent several times. They hold the client's
   * values digit by digit. A field that the client left to the model has null or its default.
   */
  readonly repeated: string;
}

export function termsOf(request: ResponseRequest, namespaced: ResponseTerms["namespaced"]): ResponseTerms {
  const { instructions, metadata, reasoning, text, tool_choice: choice, tools } = request;
  const summary = reasoning?.summary ?? null;
  const repeated = {
    ...never,
    instructions: instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    metadata: metadata ?? {},
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    reasoning: { effort: reasoning?.effort ?? null, summary },
    temperature: request.temperature ?? null,
    text: { format: text?.format ?? { type: "text" } },
    tool_choice: choice ?? "auto",
    tools: (tools ?? []).filter(isOwnTool).map(told),
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? null,
  };
  return {
    namespaced,
    thoughts: summary === null ? "reasoning" : "summary",
    repeated: JSON.stringify(repeated).slice(1, -1),
  };
}

/** Writes a tool with all its fields: in this API a function always has `parameters` and `strict`. */
function told(tool: OwnTool): object {
  if (tool.type === "namespace") return { ...tool, description: tool.description ?? "", tools: tool.tools.map(told) };
  return { ...tool, parameters: tool.parameters ?? null, strict: tool.strict ?? null };
}

/** Fields with a fixed value. No response is stored, none continues without its client, and no input is truncated. */
const never = {
  access_programs: null,
  background: false,
  previous_response_id: null,
  store: false,
  truncation: "disabled",
} as const;
