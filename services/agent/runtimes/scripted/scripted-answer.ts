import { Fault } from "#shared/fault/fault.ts";
import { contentText, type ChatBody } from "#shared/protocol/chat-body.ts";
import type { ScriptedModel } from "./scripted-models.ts";
import { readScript, type Script } from "./script-line.ts";

/**
 * What the demonstration will say to one request, decided before it says anything. Positions count reasoning tokens
 * first and then those of the text; position i is due at `firstMs + i * delayMs` after the start.
 */
export interface ScriptedAnswer {
  readonly thoughts: number;
  readonly textTokens: number;
  readonly token: (index: number) => string;
  readonly firstMs: number;
  readonly delayMs: number;
  /** What goes wrong, and before which position. Where several things would, the first of them does. */
  readonly mishap: { readonly kind: "fail" | "stall" | "exit"; readonly position: number } | undefined;
  readonly call: { readonly name: string; readonly arguments: string } | undefined;
  readonly finish: "stop" | "length" | "tool_calls";
  readonly promptTokens: number;
}

const greeting = [
  "Hello! You have reached Trunkline's demonstration.",
  "Your request went the whole real way, through the gateway and the broker to an agent on this machine and back,",
  "but there is no language model here: this text is always the same.",
  "To talk to a real model, install Ollama (https://ollama.com), run `ollama pull llama3.2`, and start Trunkline again.",
  "A message that begins with `/script tokens=100 delay_ms=50` makes me talk for longer.",
].join(" ");
const greetingTokens = greeting.split(/(?<= )/);
const greetingDelayMs = 5;

export function planAnswer(request: { model: ScriptedModel; body: ChatBody }): ScriptedAnswer {
  const { model, body } = request;
  const script = readScript(lastUserText(body));
  if (script !== undefined && script.think > 0 && !model.capabilities.thinking) {
    throw new Fault("invalid_value", {
      message: `The script line does not work: '${model.id}' has no thinking mode, so 'think' can only be 0.`,
      param: "messages",
    });
  }
  const demanded = toolToCall(body, script);
  const wanted = script?.tokens ?? (demanded ? 0 : greetingTokens.length);
  const textTokens = Math.min(wanted, body.max_tokens ?? wanted);
  const whole = textTokens === wanted;
  const call = whole ? demanded : undefined;
  return {
    thoughts: script?.think ?? 0,
    textTokens,
    token: script === undefined ? (index) => greetingTokens[index] ?? "" : (index) => `${script.nonce}-${index} `,
    firstMs: script?.firstMs ?? 0,
    delayMs: script?.delayMs ?? greetingDelayMs,
    mishap: script && firstMishap(script, whole ? textTokens : textTokens - 1),
    call,
    finish: !whole ? "length" : call ? "tool_calls" : "stop",
    promptTokens: body.messages.reduce((sum, { content }) => sum + countWords(contentText(content)), 0),
  };
}

function lastUserText(body: ChatBody): string {
  return contentText(body.messages.findLast(({ role }) => role === "user")?.content);
}

function firstMishap(script: Script, lastIndex: number): ScriptedAnswer["mishap"] {
  const mishaps = [
    { kind: "fail" as const, index: script.failAt },
    { kind: "stall" as const, index: script.stallAt },
    { kind: "exit" as const, index: script.exitAt },
  ];
  const [first] = mishaps
    .flatMap(({ kind, index }) => (index === undefined ? [] : [{ kind, position: script.think + index }]))
    .sort((left, right) => left.position - right.position);
  return first && first.position <= script.think + lastIndex ? first : undefined;
}

/**
 * The tool to call, if any: the one of the script line, or whatever `tool_choice` demands. Once a tool has answered the
 * last user message no further call is made, so that the loop of a client that runs tools comes to its end.
 */
function toolToCall(body: ChatBody, script: Script | undefined): ScriptedAnswer["call"] {
  const lastUser = body.messages.findLastIndex(({ role }) => role === "user");
  if (body.messages.slice(lastUser + 1).some(({ role }) => role === "tool")) return undefined;
  const callable = callableTools(body);
  if (script?.tool !== undefined) {
    if (callable.includes(script.tool)) return { name: script.tool, arguments: script.args ?? "{}" };
    throw new Fault("invalid_value", {
      message: `The script line does not work: the request lets no tool '${script.tool}' be called.`,
      param: "messages",
    });
  }
  const choice = body.tool_choice ?? "auto";
  if (choice === "auto" || choice === "none") return undefined;
  const [name] = callable;
  if (name !== undefined) return { name, arguments: "{}" };
  throw new Fault("invalid_value", {
    message: "'tool_choice' demands a tool that 'tools' does not have.",
    param: "tool_choice",
  });
}

function callableTools(body: ChatBody): string[] {
  const names = (body.tools ?? []).map((tool) => tool.function.name);
  const choice = body.tool_choice;
  if (choice === "none") return [];
  return typeof choice === "object" ? names.filter((name) => name === choice.function.name) : names;
}

/** Counts words without cutting the text up: a prompt may have many millions of characters. */
export function countWords(text: string): number {
  let count = 0;
  let inWord = false;
  for (let at = 0; at < text.length; at++) {
    const isSpace = text.charCodeAt(at) <= 0x20;
    if (!isSpace && !inWord) count++;
    inWord = !isSpace;
  }
  return count;
}
