import { Fault } from "#shared/fault/fault.ts";
import type { ToolDefinition } from "#shared/protocol/chat-body.ts";
import type { Choice } from "../chosen-tools.ts";
import { insistOnSchemaSize } from "../schema-size.ts";
import { innerName, type FunctionName } from "./function-names.ts";
import type { FunctionTool, ResponseTool, ResponseToolChoice } from "./response-tools.ts";

/** As long as any function's name may be. */
const innerNameCharactersMax = 64;

/** A function of a request, what it is called there, and where it stands. */
interface Placed {
  readonly tool: FunctionTool;
  readonly called: FunctionName;
  readonly param: string;
}

interface InnerTools {
  /** The functions of a request as machines are given them. */
  readonly tools: ToolDefinition[];
  /** Those that stand in a namespace, by the names that machines know. */
  readonly namespaced: Readonly<Record<string, FunctionName>>;
}

export function innerTools(tools: readonly ResponseTool[]): InnerTools {
  const placed = tools.flatMap((tool, place) => functionsOf(tool, `tools[${place}]`));
  const names = new Map<string, FunctionName>();
  for (const { tool, called, param } of placed) {
    insistOnSchemaSize(tool.parameters ?? undefined, `${param}.parameters`);
    const inner = innerName(called);
    if (inner.length > innerNameCharactersMax) throw tooLong(param);
    if (called.namespace !== undefined && names.has(inner)) throw sameName(inner, param);
    names.set(inner, called);
  }
  return {
    tools: placed.map(({ tool, called }) => innerTool(tool, innerName(called))),
    namespaced: Object.fromEntries([...names].filter(([, { namespace }]) => namespace !== undefined)),
  };
}

/** A choice names functions as they are called alone. */
export function choiceOf(choice: ResponseToolChoice): Choice {
  if (typeof choice === "string") return choice;
  if (choice.type === "function") return { name: choice.name, param: "tool_choice.name" };
  const { mode, tools } = choice;
  return {
    mode,
    allowed: tools.map((tool, place) => ({ name: tool.name, param: `tool_choice.tools[${place}].name` })),
  };
}

function functionsOf(tool: ResponseTool, param: string): Placed[] {
  if (tool.type === "function") return [{ tool, called: tool, param }];
  if (tool.type !== "namespace") return [];
  const { name: namespace, tools } = tool;
  return tools.map((each, place) => ({
    tool: each,
    called: { name: each.name, namespace },
    param: `${param}.tools[${place}]`,
  }));
}

function innerTool({ description, parameters, strict }: FunctionTool, name: string): ToolDefinition {
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

function tooLong(param: string): Fault {
  return new Fault("string_too_long", {
    message: `'${param}.name' and the name of its namespace must have at most ${innerNameCharactersMax - 2} characters together.`,
    param: `${param}.name`,
  });
}

function sameName(inner: string, param: string): Fault {
  return new Fault("invalid_value", {
    message: `Models are told '${inner}' of two functions of 'tools', so that nobody could tell which of them is called.`,
    param: `${param}.name`,
  });
}
