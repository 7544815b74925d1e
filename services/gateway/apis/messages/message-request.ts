import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody, ToolDefinition } from "#shared/protocol/job-bodies.ts";
import { readShape } from "../../http/read-json.ts";
import { isSlowToCount, readAsChat } from "../../chats/read-chat.ts";
import type { AskedEffort, ReadOptions, ReadRequest, Reads } from "../../requests/read-request.ts";
import {
  dropEmptyLists,
  dropNulls,
  dropNullsAt,
  givenFields,
  assertSchemaSize,
  refuseFields,
} from "../../requests/request-fields.ts";
import { chosenTools, type Choice, innerTool } from "../../chats/request-tools.ts";
import { countedMessage, messageRequest, unsupportedMessagesFields } from "./message-schema.ts";
import type { ClientTool, ForeignTool, MessageRequest } from "./message-schema.ts";
import { turnsOf } from "./turns.ts";

export const reads: Reads = {
  message: { read: (input, options) => messageOf(input, options) },
  count: { read: (input, options) => messageOf(input, options, true), isSlow: isSlowToCount },
};

function messageOf(input: Record<string, unknown>, { promptSeed }: ReadOptions, counts = false): ReadRequest {
  const { effort, loadedTools, ...request } = readMessageRequest(input, counts);
  const tellsStop = request.body.stop === undefined ? undefined : true;
  return { ...readAsChat(request, { promptSeed, foldsSystem: true, loadedTools, counts }), effort, tellsStop };
}

/** Reads a request of the Messages API and translates it to the job body, which is a chat. */
export function readMessageRequest(input: Record<string, unknown>, counts = false) {
  dropEmptyFields(input);
  refuseFields(input, unsupportedMessagesFields);
  const { value, ignored } = readShape(counts ? countedMessage : messageRequest, input);
  const turns = turnsOf(value);
  const { tools, ignoredTools, deferred } = readTools(value.tools ?? []);
  assertSchemaSize(formatOf(value)?.schema, "output_config.format.schema");
  return {
    model: value.model,
    stream: value.stream ?? false,
    body: bodyOf(value, { messages: turns.messages, tools }),
    ...turns.images,
    ignored: [...ignored, ...turns.ignored, ...ignoredTools],
    effort: effortOf(value),
    form: {},
    /** Names of the deferred tools that the conversation loaded, each once, in its order. */
    loadedTools: [...new Set(turns.loadedTools)].filter((name) => deferred.has(name)),
  };
}

function dropEmptyFields(input: Record<string, unknown>): void {
  dropNulls(input);
  dropEmptyLists(input, ["tools", "stop_sequences", "system"]);
  dropNullsAt(input, ["messages.content", "messages.content.content", "system", "tools"]);
  dropNullsAt(input, ["thinking", "output_config", "tool_choice"]);
}

function bodyOf(
  request: MessageRequest,
  { messages, tools }: Pick<ChatBody, "messages"> & { readonly tools: readonly ToolDefinition[] },
): ChatBody {
  const { max_tokens, temperature, top_p, top_k, stop_sequences: stop, tool_choice: choice } = request;
  const format = formatOf(request);
  const isSingle = choice && "disable_parallel_tool_use" in choice && choice.disable_parallel_tool_use === true;
  const given = givenFields({
    max_tokens,
    temperature,
    top_p,
    top_k,
    stop,
    parallel_tool_calls: isSingle && tools.length > 0 ? false : undefined,
    reasoning_effort: effortOf(request)?.value,
    response_format: format && { type: "json_schema" as const, json_schema: { name: "answer", schema: format.schema } },
  });
  return { messages, ...chosenTools(tools, choice ? choiceOf(choice) : undefined), ...given };
}

/**
 * Returns the effort that a request asks for. Clients of this API send it to every model by habit, so a model or runtime
 * that lacks it answers without it.
 */
function effortOf({ thinking, output_config: config }: MessageRequest): AskedEffort | undefined {
  if (thinking?.type === "disabled") return { field: "thinking", value: "none" };
  return config?.effort ? { field: "output_config.effort", value: config.effort } : undefined;
}

function formatOf({ output_config: config, output_format: older }: MessageRequest) {
  return config?.format ?? older ?? undefined;
}

function choiceOf(choice: NonNullable<MessageRequest["tool_choice"]>): Choice {
  switch (choice.type) {
    case "any":
      return "required";
    case "tool":
      return { name: choice.name, param: "tool_choice.name" };
    default:
      return choice.type;
  }
}

type MessageTool = ClientTool | ForeignTool;

function isForeign(tool: MessageTool): tool is ForeignTool {
  return typeof tool.type === "string" && tool.type !== "custom";
}

/**
 * Types of tools that the client runs, and whose input only Anthropic's models know. Other foreign tools run on
 * Anthropic's servers.
 */
const unknownInput = /^(?:bash|computer|memory|text_editor)_\d/;

/** Reads the tools of a request. Refuses a request whose tools are all known to Anthropic only. */
function readTools(given: readonly MessageTool[]) {
  /** The tools that the client runs. */
  const tools: ToolDefinition[] = [];
  /** Paths of the tools that Anthropic's servers run, which some clients offer by habit to every server. */
  const ignoredTools: string[] = [];
  /** Names of the tools that a conversation loads. */
  const deferred = new Set<string>();
  for (const [index, tool] of given.entries()) {
    const param = `tools[${index}]`;
    if (isForeign(tool)) {
      if (unknownInput.test(tool.type)) throw onlyAnthropics(tool, param);
      ignoredTools.push(param);
      continue;
    }
    assertSchemaSize(tool.input_schema ?? undefined, `${param}.input_schema`);
    tools.push(innerTool({ ...tool, parameters: tool.input_schema }));
    if (tool.defer_loading === true) deferred.add(tool.name);
  }
  const [first] = given;
  if (tools.length === 0 && first !== undefined && isForeign(first)) throw onlyAnthropics(first, "tools[0]");
  return { tools, ignoredTools, deferred };
}

const typeCharactersMax = 64;

function onlyAnthropics({ type }: ForeignTool, param: string): Fault {
  return new Fault("unsupported_value", {
    message: `'${param}' is the tool '${type.slice(0, typeCharactersMax)}' of Anthropic, which nothing here knows; send tools with a 'name' and an 'input_schema'.`,
    param: `${param}.type`,
  });
}
