import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody, ToolDefinition } from "#shared/protocol/chat-body.ts";
import type { CallSyntax } from "./gguf-call-syntax.ts";
import type { GgufTemplate } from "./gguf-template.ts";
import { JsonGrammar, literal, UnsupportedSchema } from "./json-grammar.ts";

const gap = "[ \\n\\t]{0,8}";

/**
 * Returns the grammar (GBNF) of the answers that a request admits, if the request asks for JSON or requires a tool.
 * Returns undefined if the request leaves the answer to the model. The grammar does not restrict the model's thoughts.
 */
export function answerGrammar(given: {
  readonly body: ChatBody;
  readonly template: GgufTemplate;
  readonly thinking: boolean;
}): string | undefined {
  const { body, template, thinking } = given;
  const json = new JsonGrammar();
  const format = insistsOnTool(body) ? undefined : formatRule(body, template, json);
  const mayCall = body.tools !== undefined && body.tool_choice !== "none";
  if (format === undefined && !insistsOnTool(body)) return undefined;
  const call = mayCall || format === undefined ? callRule(body, template.calls, json) : undefined;
  const answer = `(${[format, call].filter((each) => each !== undefined).join(" | ")})`;
  const thought = body.reasoning_effort === "none" && !thinking ? "" : thoughtRule(template, thinking);
  return `root ::= ${thought} ${answer} ${gap}\n${json.text}`;
}

function insistsOnTool({ tool_choice: choice }: ChatBody): boolean {
  return choice === "required" || typeof choice === "object";
}

function formatRule(body: ChatBody, template: GgufTemplate, json: JsonGrammar): string | undefined {
  const format = body.response_format;
  if (format === undefined || format.type === "text") return undefined;
  const spoken = template.onChannels ? literal("<|channel|>final<|message|>") : "";
  if (format.type === "json_object") return `${spoken} object`;
  try {
    return `${spoken} ${json.of(format.json_schema.schema)}`;
  } catch (error) {
    if (!(error instanceof UnsupportedSchema)) throw error;
    const param = "response_format.json_schema.schema";
    throw new Fault("unsupported_value", {
      message: `The runtime of this model cannot hold an answer to '${param}': it has ${error.message}.`,
      param,
    });
  }
}

function callRule(body: ChatBody, syntax: CallSyntax | undefined, json: JsonGrammar): string {
  const { tool_choice: choice, tools = [] } = body;
  const named = typeof choice === "object" ? choice.function.name : undefined;
  const allowed = named === undefined ? tools : tools.filter((tool) => tool.function.name === named);
  if (syntax === undefined || allowed.length === 0) {
    throw new Fault("invalid_value", { message: "'tool_choice' names no tool of 'tools'.", param: "tool_choice" });
  }
  const call = `(${allowed.map((tool) => oneCall(tool, syntax, json)).join(" | ")})`;
  const ends = syntax.ends.map((end) => `(${gap} ${literal(end)})?`).join(" ");
  const several = named === undefined && body.parallel_tool_calls !== false && syntax.again !== undefined;
  if (syntax.form.kind === "json" && syntax.form.inArray) {
    const more = several ? `(space "," space ${call})*` : "";
    return `${literal(syntax.begin)} ${gap} "[" space ${call} ${more} space "]" ${ends}`;
  }
  const [closing = ""] = syntax.ends.map((end) => `(${gap} ${literal(end)})?`);
  const more = several ? `(${closing} ${gap} ${literal(syntax.again ?? "")} ${gap} ${call})*` : "";
  return `${literal(syntax.begin)} ${gap} ${call} ${more} ${ends}`;
}

function oneCall({ function: tool }: ToolDefinition, { form }: CallSyntax, json: JsonGrammar): string {
  const given = argumentsRule(tool.parameters, json);
  if (form.kind === "named") return `${literal(tool.name)} ${literal(form.between)} ${given}`;
  const [nameKey, argumentsKey, name] = [form.nameKey, form.argumentsKey, tool.name].map((each) =>
    literal(JSON.stringify(each)),
  );
  return `"{" space ${nameKey} space ":" space ${name} space "," space ${argumentsKey} space ":" space ${given} space "}"`;
}

/** Returns the rule for a tool's arguments: their schema if a grammar can express it, else any JSON object. */
function argumentsRule(parameters: unknown, json: JsonGrammar): string {
  try {
    return parameters === undefined ? "object" : json.of(parameters);
  } catch (error) {
    if (error instanceof UnsupportedSchema) return "object";
    throw error;
  }
}

function thoughtRule(template: GgufTemplate, thinking: boolean): string {
  if (template.onChannels) {
    const [open, close] = ["<|channel|>analysis<|message|>", "<|end|>"].map(literal);
    return `(${open} ([^<] | "<" [^|])* ${close} ${literal("<|start|>assistant")})? ${gap}`;
  }
  const { thoughts } = template;
  if (thoughts === undefined) return "";
  const [first = "", second = ""] = thoughts.close;
  const inside = `([^${escaped(first)}] | ${literal(first)} [^${escaped(second)}])* ${literal(thoughts.close)} ${gap}`;
  return thinking ? inside : `(${gap} ${literal(thoughts.open)} ${inside})?`;
}

function escaped(character: string): string {
  return /[\]\\^-]/.test(character) ? `\\${character}` : character;
}
