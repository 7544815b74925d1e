import type { DescribedModel } from "../runtime.ts";
import type { Capabilities } from "#shared/protocol/model.ts";
import { Fault } from "#shared/fault/fault.ts";
import { prefilledText } from "../adjust-answer.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { type ChatBody, contentText, type TextToContinue } from "#shared/protocol/job-bodies.ts";

/**
 * The complete plan of an answer to one request, made before any output. Positions count reasoning tokens first and
 * then text tokens. Position i is due at `firstMs + i * delayMs` after the start.
 */
export interface ScriptedAnswer {
  readonly thoughts: number;
  readonly textTokens: number;
  readonly token: (index: number) => string;
  readonly firstMs: number;
  readonly delayMs: number;
  /** The failure of the script, and the position before which it happens. The earliest failure wins. */
  readonly mishap: { readonly kind: "fail" | "stall" | "exit"; readonly position: number } | undefined;
  readonly call: { readonly name: string; readonly arguments: string } | undefined;
  readonly finish: "stop" | "length" | "tool_calls";
  /** The texts of the prompt, of which each word is a token. */
  readonly prompt: Iterable<string>;
}

const greeting = [
  "Hello! You have reached Trunkline's demonstration.",
  "Your request went the whole real way, through the gateway and the broker to an agent on this machine and back,",
  "but there is no language model here: this text is always the same.",
  "To talk to a real model, install Ollama (https://ollama.com), run `ollama pull llama3.2`, and start Trunkline again.",
  "A message that begins with `script tokens=100 delay_ms=50` makes me talk for longer.",
].join(" ");
const greetingTokens = greeting.split(/(?<= )/);
const greetingDelayMs = 5;

export function planAnswer(request: { model: ScriptedModel; body: ChatBody }): ScriptedAnswer {
  const { model, body } = request;
  const script = readScript(lastUserText(body));
  if (script !== undefined && script.think > 0 && !model.capabilities.thinking) {
    throw scriptFault(`'${model.id}' has no thinking mode, so 'think' can only be 0`, "messages");
  }
  const prompt = body.messages.values().map(({ content }) => contentText(content));
  const begun = prefilledText(body);
  return plan({ script, call: toolToCall(body, script), lengths: body, prompt, begun });
}

/** Plans the continuation of a text. It equals the answer to a chat with this text, but holds only text. */
export function planContinuation(body: TextToContinue): ScriptedAnswer {
  const { prompt } = body;
  const script = readScript(prompt, "prompt");
  if (script !== undefined && (script.think > 0 || script.tool !== undefined)) {
    throw scriptFault("a text is continued by text alone, without 'think' and 'tool'", "prompt");
  }
  const begun =
    script === undefined ? greetingAtEnd(prompt) : prompt.slice(prompt.split("\n", 1)[0]?.length).trimStart();
  return plan({ script, call: undefined, lengths: body, prompt: [prompt], begun });
}

/** Returns the beginning of the greeting with which a text ends. */
function greetingAtEnd(text: string): string {
  const ends = greetingTokens.map((_, index) => greetingTokens.slice(0, index + 1).join(""));
  return ends.findLast((end) => text.endsWith(end)) ?? "";
}

function plan(given: {
  readonly script: Script | undefined;
  readonly call: ScriptedAnswer["call"];
  readonly lengths: Pick<ChatBody, "max_tokens" | "min_tokens" | "ignore_eos">;
  readonly prompt: Iterable<string>;
  /** The beginning of the answer that a client or another machine already has. */
  readonly begun?: string;
}): ScriptedAnswer {
  const { script, call, prompt } = given;
  const { max_tokens: tokensMax, min_tokens: tokensMin = 0, ignore_eos: ignoresEnd } = given.lengths;
  const wanted = script?.tokens ?? (call ? 0 : greetingTokens.length);
  const token = script === undefined ? greetingToken : tokenOf(script);
  // A call ends an answer, whatever its length is.
  const least = call ? 0 : ignoresEnd && tokensMax !== undefined ? tokensMax : Math.min(tokensMin, scriptTokensMax);
  const past = tokensIn(given.begun ?? "", { token, tokens: least > 0 ? Infinity : wanted });
  const left = Math.max(wanted - (past?.tokens ?? 0), least);
  const textTokens = Math.min(left, tokensMax ?? left);
  const whole = textTokens === left && !(ignoresEnd && textTokens === tokensMax);
  const planned = {
    textTokens,
    delayMs: script?.delayMs ?? greetingDelayMs,
    call: whole ? call : undefined,
    finish: !whole ? "length" : call ? "tool_calls" : "stop",
    prompt,
  } as const;
  if (past === undefined) {
    const mishap = script && firstMishap(script, { from: 0, to: whole ? textTokens : textTokens - 1 });
    return { ...planned, thoughts: script?.think ?? 0, token, firstMs: script?.firstMs ?? 0, mishap };
  }
  const to = past.tokens + (whole ? textTokens : textTokens - 1);
  const mishap = script && firstMishap({ ...script, think: -past.tokens }, { from: past.tokens + 1, to });
  const rest = (index: number): string => token(past.tokens + index).slice(index === 0 ? past.characters : 0);
  return { ...planned, thoughts: 0, token: rest, firstMs: 0, mishap };
}

/** Begins the greeting anew after its end, for a client that wants a longer answer. */
function greetingToken(index: number): string {
  return greetingTokens[index % greetingTokens.length] ?? "";
}

function tokenOf({ nonce }: Script): ScriptedAnswer["token"] {
  return (index) => `${nonce}-${index} `;
}

/**
 * Returns the tokens that the beginning of an answer has, and its characters of the token after them. Returns undefined for
 * another text.
 */
function tokensIn(begun: string, answer: Pick<ScriptedAnswer, "token"> & { readonly tokens: number }) {
  let at = 0;
  for (let index = 0; at < begun.length; index += 1) {
    const token = index < answer.tokens ? answer.token(index) : "";
    const rest = begun.slice(at, at + token.length);
    if (token === "" || !token.startsWith(rest)) return undefined;
    if (rest.length < token.length) return { tokens: index, characters: rest.length };
    at += token.length;
    if (at === begun.length) return { tokens: index + 1, characters: 0 };
  }
  return undefined;
}

/**
 * Returns the text that may begin with a script line: the last message of the user, or one part of it. Coding agents put
 * parts of their own beside the user's words.
 */
function lastUserText(body: ChatBody): string {
  const content = body.messages.findLast(({ role }) => role === "user")?.content;
  const texts = Array.isArray(content) ? content.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [];
  return texts.findLast((text) => scriptBeginning.test(text)) ?? contentText(content);
}

function firstMishap(
  script: Script,
  { from, to }: { readonly from: number; readonly to: number },
): ScriptedAnswer["mishap"] {
  const mishaps = [
    { kind: "fail" as const, index: script.failAt },
    { kind: "stall" as const, index: script.stallAt },
    { kind: "exit" as const, index: script.exitAt },
  ];
  const [first] = mishaps
    .flatMap(({ kind, index }) =>
      index === undefined || index < from ? [] : [{ kind, position: script.think + index }],
    )
    .sort((left, right) => left.position - right.position);
  return first && first.position <= script.think + to ? first : undefined;
}

/**
 * Returns the tool to call, if any: the one of the script line, or the one that `tool_choice` demands. Makes no further
 * call once a tool has answered the last user message, so that a client's tool loop ends.
 */
function toolToCall(body: ChatBody, script: Script | undefined): ScriptedAnswer["call"] {
  const lastUser = body.messages.findLastIndex(({ role }) => role === "user");
  if (body.messages.slice(lastUser + 1).some(({ role }) => role === "tool")) return undefined;
  const callable = callableTools(body);
  if (script?.tool !== undefined) {
    if (callable.includes(script.tool)) return { name: script.tool, arguments: script.args ?? "{}" };
    throw scriptFault(`the request lets no tool '${script.tool}' be called`, "messages");
  }
  const choice = body.tool_choice ?? "auto";
  if (choice === "auto" || choice === "none") return undefined;
  const [name] = callable;
  if (name !== undefined) return { name, arguments: "{}" };
  const message = "'tool_choice' names a tool that 'tools' does not contain.";
  throw new Fault("invalid_value", { message, param: "tool_choice" });
}

function callableTools(body: ChatBody): string[] {
  const names = (body.tools ?? []).map((tool) => tool.function.name);
  const choice = body.tool_choice;
  if (choice === "none") return [];
  return typeof choice === "object" ? names.filter((name) => name === choice.function.name) : names;
}

/** The settings of a script line. Indexes count the tokens of the text from 0. */
type Script = NonNullable<ReturnType<typeof scriptIn>>;

const scriptTokensMax = 1_000_000;
const scriptDelayMsMax = 60_000;
const scriptFirstMsMax = 600_000;

/** The fields that may hold a script line. */
type ScriptedField = "messages" | "prompt";

class Problem extends Error {}

const defaultTokens = 10;
const defaultNonce = "token";

const words = ["tokens", "nonce", "think", "first_ms", "delay_ms", "fail_at", "stall_at", "exit_at", "tool", "args"];
/** A script line begins with `/script`. Some clients take that for a command of their own, and send `script tokens=…`. */
const scriptBeginning = new RegExp(`^(?:/script(?!\\S)|script +(?:${words.join("|")})=)`);
const wordCharactersShownMax = 32;
const namePattern = /^[a-zA-Z0-9_-]{1,64}$/;

/** Returns the fault for an invalid script line, with the field that held it. */
function scriptFault(problem: string, param: ScriptedField): Fault {
  return new Fault("invalid_value", { message: `The script line does not work: ${problem}.`, param });
}

/**
 * Reads the script line that a message, or a text to continue, may begin with. An example is
 * `/script tokens=200 delay_ms=20 nonce=abc`. The slash may be left out before a word of the line.
 */
export function readScript(text: string, param: ScriptedField = "messages"): Script | undefined {
  try {
    return scriptIn(text);
  } catch (error) {
    throw error instanceof Problem ? scriptFault(error.message, param) : error;
  }
}

function scriptIn(text: string) {
  if (!scriptBeginning.test(text)) return undefined;
  const [line = ""] = text.split(/\r?\n/, 1);
  const given = readWords(line);
  const tokens = wholeNumber(given, "tokens", scriptTokensMax) ?? defaultTokens;
  const script = {
    tokens,
    nonce: nameIn(given, "nonce") ?? defaultNonce,
    /** Reasoning tokens before the text. */
    think: wholeNumber(given, "think", scriptTokensMax) ?? 0,
    /** Silence before the first token. */
    firstMs: wholeNumber(given, "first_ms", scriptFirstMsMax) ?? 0,
    delayMs: wholeNumber(given, "delay_ms", scriptDelayMsMax) ?? 0,
    failAt: wholeNumber(given, "fail_at", tokens),
    stallAt: wholeNumber(given, "stall_at", tokens),
    exitAt: wholeNumber(given, "exit_at", tokens),
    /** The tool to call after the text, and its arguments as JSON. */
    tool: nameIn(given, "tool"),
    args: jsonObject(given, "args"),
  };
  if (script.args !== undefined && script.tool === undefined) throw new Problem("'args' needs 'tool' beside it");
  return script;
}

function readWords(line: string): ReadonlyMap<string, string> {
  const given = new Map<string, string>();
  for (const item of line.trim().split(/\s+/).slice(1)) {
    const [word = ""] = item.split("=", 1);
    const shown = word.slice(0, wordCharactersShownMax);
    if (!words.includes(word)) throw new Problem(`'${shown}' is not one of ${words.join(", ")}`);
    if (!item.includes("=")) throw new Problem(`'${shown}' needs a value, as in '${shown}=…'`);
    if (given.has(word)) throw new Problem(`'${shown}' comes twice`);
    given.set(word, item.slice(word.length + 1));
  }
  return given;
}

function wholeNumber(given: ReadonlyMap<string, string>, word: string, max: number): number | undefined {
  const value = given.get(word);
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value) && Number(value) <= max) return Number(value);
  const why = word.endsWith("_at") ? ", which is the number of tokens" : "";
  throw new Problem(`'${word}' must be a whole number from 0 to ${max}${why}`);
}

function nameIn(given: ReadonlyMap<string, string>, word: string): string | undefined {
  const value = given.get(word);
  if (value === undefined || namePattern.test(value)) return value;
  throw new Problem(`'${word}' must be 1 to 64 letters, digits, underscores or hyphens`);
}

function jsonObject(given: ReadonlyMap<string, string>, word: string): string | undefined {
  const value = given.get(word);
  if (value === undefined) return undefined;
  const parsed = jsonIn(value);
  if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return value;
  throw new Problem(`'${word}' must be a JSON object without spaces`);
}

/** A demonstration model. All its capabilities are known. */
export type ScriptedModel = Omit<DescribedModel, "capabilities"> & { readonly capabilities: Capabilities };
