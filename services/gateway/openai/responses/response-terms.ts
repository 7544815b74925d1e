import type { FunctionName } from "./function-names.ts";
import type { ResponseRequest } from "./response-request.ts";
import { isOwnTool, type OwnTool } from "./response-tools.ts";

/** How a response is told, and what it repeats of its request. */
export interface ResponseTerms {
  /** As what thoughts are told: who asks for a summary reads nothing else, and gets one that leaves nothing out. */
  readonly thoughts: "reasoning" | "summary";
  /** Functions that stand in a namespace, by the names that machines know. */
  readonly namespaced: Readonly<Record<string, FunctionName>>;
  /**
   * Fields of a JSON object as they are written, since they are written several times and hold what a client gave digit by
   * digit: what was asked, and what was left to the model.
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

/** In this API a function always says what it takes, and how exactly. */
function told(tool: OwnTool): object {
  if (tool.type === "namespace") return { ...tool, description: tool.description ?? "", tools: tool.tools.map(told) };
  return { ...tool, parameters: tool.parameters ?? null, strict: tool.strict ?? null };
}

/** What no response here is asked for: none is kept, none goes on without its client, and no input is cut. */
const never = {
  access_programs: null,
  background: false,
  previous_response_id: null,
  store: false,
  truncation: "disabled",
} as const;
