import { Fault } from "#shared/fault/fault.ts";
import { type ToolDefinition, toolsMax } from "#shared/protocol/job-bodies.ts";
import { customFunction } from "../../chats/custom-tools.ts";
import { type Choice, innerTool, type OuterFunction } from "../../chats/request-tools.ts";
import { assertSchemaSize, invalidValue } from "../../requests/request-fields.ts";
import {
  type CalledTool,
  type CustomTool,
  type FunctionTool,
  innerName,
  isOwnTool,
  type OwnTool,
  type ResponseTool,
  type ResponseToolChoice,
} from "./response-schema.ts";

/**
 * Maximum length of the request fields that a response repeats, and of the descriptions that its functions repeat. A
 * streamed response repeats the fields three times.
 */
export const repeatedCharactersMax = 512 * 1024;

/** Writes a tool with all its fields: in this API a function always has `parameters` and `strict`. */
export function shownTool(tool: OwnTool): object {
  if (tool.type === "namespace")
    return { ...tool, description: tool.description ?? "", tools: tool.tools.map(shownTool) };
  if (tool.type === "custom") return { ...tool, format: tool.format ?? { type: "text" } };
  return { ...tool, parameters: tool.parameters ?? null, strict: tool.strict ?? null };
}

/** A function of a request, its name in the request, and its path there. */
interface ToolAt {
  readonly tool: OuterFunction;
  readonly called: CalledTool;
  readonly param: string;
}

/** The functions of a request in the form that machines get, and their names in the request. */
export interface InnerTools {
  /** The functions and custom tools, by the names that machines get. */
  readonly called: ReadonlyMap<string, CalledTool>;
  readonly tools: ToolDefinition[];
}

export function innerTools(tools: readonly ResponseTool[]): InnerTools {
  assertDescriptions(tools);
  const placed = tools.flatMap((tool, index) => functionsOf(tool, `tools[${index}]`));
  if (placed.length > toolsMax) {
    throw new Fault("array_above_max_length", {
      message: `'tools' must hold at most ${toolsMax} functions (toolsMax), those of namespaces included; it holds ${placed.length}.`,
      param: "tools",
    });
  }
  const names = new Map<string, CalledTool>();
  for (const { tool, called, param } of placed) {
    assertSchemaSize(tool.parameters ?? undefined, `${param}.parameters`);
    const inner = innerName(called);
    const other = names.get(inner);
    if (other !== undefined && (other.namespace ?? called.namespace) !== undefined) {
      const message = `Models are told '${inner}' of two functions of 'tools', so that nobody could tell which of them is called.`;
      throw invalidValue(`${param}.name`, message);
    }
    names.set(inner, other?.is === "custom" ? other : called);
  }
  return { tools: placed.map(({ tool, called }) => innerTool({ ...tool, name: innerName(called) })), called: names };
}

/** Bounds the descriptions of namespaces before they are copied: each of up to 512 functions gets its namespace's. */
function assertDescriptions(tools: readonly ResponseTool[]): void {
  const lengths = tools.map((each) =>
    each.type === "namespace" ? (each.description ?? "").length * each.tools.length : 0,
  );
  if (lengths.reduce((sum, length) => sum + length, 0) <= repeatedCharactersMax) return;
  const param = `tools[${lengths.indexOf(Math.max(...lengths))}].description`;
  throw new Fault("string_too_long", {
    message: `Models are told the description of a namespace with each of its functions, which may come to ${repeatedCharactersMax} characters in all (repeatedCharactersMax); shorten '${param}'.`,
    param,
  });
}

/** Converts the tool choice to a `Choice`. A tool choice names functions without their namespace. */
export function choiceOf(choice: ResponseToolChoice, { called }: InnerTools): Choice {
  if (typeof choice === "string") return choice;
  const byName = Map.groupBy(called, ([, each]) => each.name);
  const innerNameOf = (name: string): string => {
    const [meant, another] = byName.get(name) ?? [];
    return called.has(name) || meant === undefined || another !== undefined ? name : meant[0];
  };
  if (choice.type !== "allowed_tools") return { name: innerNameOf(choice.name), param: "tool_choice.name" };
  const { mode, tools } = choice;
  return {
    mode,
    allowed: tools.map(({ name }, index) => ({ name: innerNameOf(name), param: `tool_choice.tools[${index}].name` })),
  };
}

function functionsOf(tool: ResponseTool, param: string): ToolAt[] {
  if (!isOwnTool(tool)) return [];
  if (tool.type !== "namespace") return [{ tool: functionOf(tool), called: { is: tool.type, name: tool.name }, param }];
  const { name: namespace, description, tools } = tool;
  return tools.map((each, index) => {
    // Models do not support namespaces, so each function's description begins with its namespace's description.
    const described = { ...each, description: [description, each.description].filter(Boolean).join("\n\n") };
    const called = { is: each.type, name: each.name, namespace };
    return { tool: functionOf(described), called, param: `${param}.tools[${index}]` };
  });
}

function functionOf(tool: FunctionTool | CustomTool): OuterFunction {
  if (tool.type === "function") return tool;
  return customFunction(tool, tool.format?.type === "grammar" ? tool.format : undefined);
}

/** Returns the paths of the grammars of a tool, which the model reads and no runtime enforces. */
export function grammarsIn(tool: OwnTool, param: string): string[] {
  if (tool.type === "namespace") return tool.tools.flatMap((each, at) => grammarsIn(each, `${param}.tools[${at}]`));
  return tool.type === "custom" && tool.format?.type === "grammar" ? [`${param}.format`] : [];
}
