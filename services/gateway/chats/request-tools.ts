import { hash } from "node:crypto";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import {
  toolChoice,
  toolDefinition,
  toolNameCharactersMax,
  toolNamePattern,
  toolsMax,
  type ChatBody,
  type ChatMessage,
  type ToolDefinition,
} from "#shared/protocol/job-bodies.ts";
import type { AnswerRenderer } from "../jobs/answer-parts.ts";
import { invalidValue } from "../requests/request-fields.ts";

/** Bounds a tool's name in a request. Tool servers put their own name before each of theirs. */
export const outerToolNameCharactersMax = 256;

/** A tool's name as clients write it: any characters, such as the dots of `files.read`. */
export const outerToolName = z.string().min(1).max(outerToolNameCharactersMax);

export const outerTool = toolDefinition.extend({
  function: toolDefinition.shape.function.extend({ name: outerToolName }),
});

/** A function of an outer API, under the name that machines get. */
export interface OuterFunction {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly parameters?: ToolDefinition["function"]["parameters"] | null;
  readonly strict?: boolean | null | undefined;
}

/** Returns a function as chats define it. Fields without a value are left out. */
export function innerTool({ name, description, parameters, strict }: OuterFunction): ToolDefinition {
  return {
    type: "function",
    function: {
      name,
      ...(description ? { description } : {}),
      ...(parameters ? { parameters } : {}),
      ...(typeof strict === "boolean" ? { strict } : {}),
    },
  };
}

const naming = z.object({ name: z.string().min(1) });
const namedCustom = z.object({ type: z.literal("custom"), custom: naming });
const namedTool = z.discriminatedUnion("type", [
  z.object({ type: z.literal("function"), function: naming }),
  namedCustom,
]);

export const outerToolChoice = z.union([
  ...toolChoice.options,
  namedCustom,
  z.object({
    type: z.literal("allowed_tools"),
    allowed_tools: z.object({
      mode: z.enum(["auto", "required"]),
      tools: z.array(namedTool).min(1).max(toolsMax),
    }),
  }),
]);

export function choiceOf(choice: z.infer<typeof outerToolChoice>): Choice {
  if (typeof choice === "string") return choice;
  if (choice.type !== "allowed_tools") return namedIn(choice, "tool_choice");
  const { mode, tools } = choice.allowed_tools;
  return { mode, allowed: tools.map((tool, index) => namedIn(tool, `tool_choice.allowed_tools.tools[${index}]`)) };
}

function namedIn(tool: z.infer<typeof namedTool>, param: string): Named {
  const { name } = tool.type === "custom" ? tool.custom : tool.function;
  return { name, param: `${param}.${tool.type}.name` };
}

/** A tool's name, and the path of that name in the request. */
interface Named {
  readonly name: string;
  readonly param: string;
}

/**
 * The tools that the model may call: `auto` leaves it to the model, `none` is no tool, `required` is at least one.
 * `Named` is this one tool, and `allowed` is some of the tools.
 */
export type Choice =
  | "auto"
  | "none"
  | "required"
  | Named
  | { readonly mode: "auto" | "required"; readonly allowed: readonly Named[] };

/**
 * Returns the tools of a request and its tool choice in the form that machines get. Leaves out tools that may not be
 * called.
 */
export function chosenTools(
  tools: readonly ToolDefinition[],
  choice: Choice | undefined,
): Pick<ChatBody, "tools" | "tool_choice"> {
  if (tools.length === 0) {
    // Without tools the model calls none anyway, so `none` and `auto` change nothing.
    if (choice === undefined || choice === "none" || choice === "auto") return {};
    throw invalidValue("tool_choice", "'tool_choice' is only allowed when 'tools' are given.");
  }
  if (choice === undefined) return { tools: [...tools] };
  if (typeof choice === "string") return { tools: [...tools], tool_choice: choice };
  if ("name" in choice) {
    assertTool(tools, choice);
    return { tools: [...tools], tool_choice: { type: "function", function: { name: choice.name } } };
  }
  for (const each of choice.allowed) assertTool(tools, each);
  const names = new Set(choice.allowed.map(({ name }) => name));
  return { tools: tools.filter((tool) => names.has(tool.function.name)), tool_choice: choice.mode };
}

function assertTool(tools: readonly ToolDefinition[], { name, param }: Named): void {
  if (tools.some((tool) => tool.function.name === name)) return;
  throw invalidValue(param, `'${param}' names a function that is not among 'tools'.`);
}

/** The client's names of tools, by the names that machines get. */
export type ClientToolNames = ReadonlyMap<string, string>;

/**
 * Renames tools whose names machines do not take, in the definitions, the choice and the earlier calls. A new name
 * depends on the names of the tools only, so that a conversation's later turn begins with the same bytes. Returns the
 * map back, which is undefined when no tool was renamed.
 */
export function nameToolsForMachines(body: ChatBody): {
  readonly body: ChatBody;
  readonly toolNames?: ClientToolNames;
} {
  const { tools, tool_choice: choice, messages } = body;
  const names = machineNames(tools ?? []);
  if (tools === undefined || names.size === 0) return { body };
  const renamed = <Tool extends { readonly function: { readonly name: string } }>(named: Tool): Tool => {
    const name = names.get(named.function.name);
    return name === undefined ? named : { ...named, function: { ...named.function, name } };
  };
  return {
    body: {
      ...body,
      tools: tools.map(renamed),
      ...(typeof choice === "object" && { tool_choice: renamed(choice) }),
      messages: messages.map((message) =>
        message.role === "assistant" && message.tool_calls !== undefined
          ? { ...message, tool_calls: message.tool_calls.map(renamed) }
          : message,
      ),
    },
    toolNames: new Map(names.entries().map(([outer, inner]) => [inner, outer])),
  };
}

/** Returns the new names of the tools that need one. */
function machineNames(tools: readonly ToolDefinition[]): ReadonlyMap<string, string> {
  const names = new Set(tools.map((tool) => tool.function.name));
  const odd = [...names].filter((name) => !toolNamePattern.test(name));
  if (odd.length === 0) return new Map();
  const similar = Map.groupBy(names, plainName);
  return new Map(
    odd.map((name) => {
      const plain = plainName(name);
      const isUnique = similar.get(plain)?.length === 1 && plain.length <= toolNameCharactersMax;
      return [name, isUnique ? plain : markedName(plain, name)];
    }),
  );
}

function plainName(name: string): string {
  return name.replaceAll(/[^\w-]/gu, "_");
}

/** Returns a name that ends in a hash of the client's name, for a name that is too long or like another one. */
function markedName(plain: string, name: string): string {
  const mark = `_${hash("sha256", name).slice(0, 8)}`;
  return plain.slice(0, toolNameCharactersMax - mark.length) + mark;
}

/** Returns a renderer that gets the events of `renderer` with the client's own names of tools. */
export function withClientNames(renderer: AnswerRenderer, toolNames: ClientToolNames | undefined): AnswerRenderer {
  if (toolNames === undefined) return renderer;
  const named = (event: AnswerEvent): AnswerEvent =>
    event.kind === "tool-call-start" ? { ...event, name: toolNames.get(event.name) ?? event.name } : event;
  return {
    push: (events) => renderer.push(events.map(named)),
    end: (timings) => renderer.end(timings),
  };
}

/** A text for an error, and the field of the message that it names, as the end of a path. */
type OrderError = readonly [text: string, field: string];

/** A message for machines, and the path in the request where it begins. */
export interface MessageAt {
  readonly message: ChatMessage;
  readonly param: string;
}

/** The errors of tool messages in the words of an outer API. The ids of calls follow the text of `noResult`. */
export interface ToolOrderErrors {
  readonly noCall: OrderError;
  readonly sameIds: OrderError;
  readonly noResult: OrderError;
}

/**
 * Throws a `Fault` for a tool message without a call, for duplicate ids of calls, and for a call without a result before
 * the next message. Models were trained only on complete pairs, and answer nonsense otherwise. `paramAt` returns the path
 * in the request where a message begins.
 */
export function assertToolOrder(
  messages: readonly ChatMessage[],
  { noCall, sameIds, noResult }: ToolOrderErrors,
  paramAt: (index: number) => string,
): void {
  let asked: ReadonlySet<string> = new Set();
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!asked.has(message.tool_call_id)) {
        throw new Fault("tool_messages_out_of_order", { message: noCall[0], param: paramAt(index) + noCall[1] });
      }
      open.delete(message.tool_call_id);
      continue;
    }
    if (open.size > 0) throw leftOpen(open, noResult[0], paramAt(index) + noResult[1]);
    const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
    asked = new Set(calls.map(({ id }) => id));
    if (asked.size < calls.length) {
      throw new Fault("invalid_value", { message: sameIds[0], param: paramAt(index) + sameIds[1] });
    }
    open = new Set(asked);
  }
  if (open.size > 0) throw leftOpen(open, noResult[0], paramAt(messages.length - 1));
}

const idsShownMax = 5;

function leftOpen(open: ReadonlySet<string>, text: string, param: string): Fault {
  const ids = [...open];
  const shown = ids.slice(0, idsShownMax).map((id) => `'${id.slice(0, 64)}'`);
  const more = ids.length > shown.length ? ` and ${ids.length - shown.length} more` : "";
  return new Fault("tool_messages_out_of_order", { message: `${text} ${shown.join(", ")}${more}.`, param });
}
