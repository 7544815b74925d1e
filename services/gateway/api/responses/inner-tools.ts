import { Fault } from "#shared/fault/fault.ts";
import { toolsMax, type ToolDefinition } from "#shared/protocol/job-bodies.ts";
import type { Choice } from "../tool-choice.ts";
import { insistOnSchemaSize } from "../request-fields.ts";
import type { FunctionTool, ResponseTool, ResponseToolChoice } from "./response-schema.ts";

/** The name of a client's function. Some functions are in a namespace. */
export interface FunctionName {
  readonly name: string;
  readonly namespace?: string | null | undefined;
}

/** Joins the namespace and the name. Models do not support namespaces. */
export function innerName({ name, namespace }: FunctionName): string {
  return !namespace ? name : `${namespace}__${name}`;
}

/** Maximum length of a function name that includes its namespace; the same as for any function name. */
const innerNameCharactersMax = 64;

/** A function of a request, its name in the request, and its path there. */
interface Placed {
  readonly tool: FunctionTool;
  readonly called: FunctionName;
  readonly param: string;
}

/** The functions of a request, converted for machines. */
export interface InnerTools {
  /** The functions in the form that machines get. */
  readonly tools: ToolDefinition[];
  /** The functions in a namespace, by the joined names that machines get. */
  readonly namespaced: Readonly<Record<string, FunctionName>>;
  /** Returns the name that machines get for a function that a tool choice names. */
  innerNameOf(name: string): string;
}

export function innerTools(tools: readonly ResponseTool[]): InnerTools {
  const placed = tools.flatMap((tool, place) => functionsOf(tool, `tools[${place}]`));
  if (placed.length > toolsMax) throw tooMany(placed.length);
  const names = new Map<string, FunctionName>();
  for (const { tool, called, param } of placed) {
    insistOnSchemaSize(tool.parameters ?? undefined, `${param}.parameters`);
    const inner = innerName(called);
    if (inner.length > innerNameCharactersMax) throw tooLong(param);
    const other = names.get(inner);
    if (other !== undefined && (other.namespace ?? called.namespace) !== undefined) throw sameName(inner, param);
    names.set(inner, called);
  }
  return {
    tools: placed.map(({ tool, called }) => innerTool(tool, innerName(called))),
    namespaced: Object.fromEntries([...names].filter(([, { namespace }]) => namespace !== undefined)),
    innerNameOf(name) {
      const meant = [...names].filter(([, called]) => called.name === name);
      return names.has(name) || meant.length !== 1 ? name : (meant[0]?.[0] ?? name);
    },
  };
}

/** Converts the tool choice to a `Choice`. A tool choice names functions without their namespace. */
export function choiceOf(choice: ResponseToolChoice, { innerNameOf }: Pick<InnerTools, "innerNameOf">): Choice {
  if (typeof choice === "string") return choice;
  if (choice.type === "function") return { name: innerNameOf(choice.name), param: "tool_choice.name" };
  const { mode, tools } = choice;
  return {
    mode,
    allowed: tools.map(({ name }, place) => ({ name: innerNameOf(name), param: `tool_choice.tools[${place}].name` })),
  };
}

function functionsOf(tool: ResponseTool, param: string): Placed[] {
  if (tool.type === "function") return [{ tool, called: tool, param }];
  if (tool.type !== "namespace") return [];
  const { name: namespace, description, tools } = tool;
  return tools.map((each, place) => ({
    // Models do not support namespaces, so each function's description begins with its namespace's description.
    tool: { ...each, description: [description, each.description].filter(Boolean).join("\n\n") },
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

function tooMany(functions: number): Fault {
  return new Fault("array_above_max_length", {
    message: `'tools' must hold at most ${toolsMax} functions (toolsMax), those of namespaces included; it holds ${functions}.`,
    param: "tools",
  });
}

function tooLong(param: string): Fault {
  return new Fault("string_too_long", {
    message: `'${param}.name' and the name of its namespace must have at most ${innerNameCharactersMax} characters together, with the two between them (innerNameCharactersMax).`,
    param: `${param}.name`,
  });
}

function sameName(inner: string, param: string): Fault {
  return new Fault("invalid_value", {
    message: `Models are told '${inner}' of two functions of 'tools', so that nobody could tell which of them is called.`,
    param: `${param}.name`,
  });
}
