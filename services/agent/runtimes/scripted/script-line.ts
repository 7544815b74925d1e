import { Fault } from "#shared/fault/fault.ts";

/** The settings of a script line. Indexes count the tokens of the text from 0. */
export interface Script {
  readonly tokens: number;
  readonly nonce: string;
  /** Reasoning tokens before the text. */
  readonly think: number;
  /** Silence before the first token. */
  readonly firstMs: number;
  readonly delayMs: number;
  readonly failAt: number | undefined;
  readonly stallAt: number | undefined;
  readonly exitAt: number | undefined;
  /** The tool to call after the text, and its arguments as JSON. */
  readonly tool: string | undefined;
  readonly args: string | undefined;
}

export const scriptTokensMax = 1_000_000;
export const scriptDelayMsMax = 60_000;
export const scriptFirstMsMax = 600_000;

/** The fields that may hold a script line. */
export type ScriptedField = "messages" | "prompt";

class Problem extends Error {}

const defaultTokens = 10;
const defaultNonce = "token";

const words = ["tokens", "nonce", "think", "first_ms", "delay_ms", "fail_at", "stall_at", "exit_at", "tool", "args"];
const wordCharactersShownMax = 32;
const namePattern = /^[a-zA-Z0-9_-]{1,64}$/;

/** Returns the fault for an invalid script line, with the field that held it. */
export function scriptFault(problem: string, param: ScriptedField): Fault {
  return new Fault("invalid_value", { message: `The script line does not work: ${problem}.`, param });
}

/**
 * Reads the script line that a message, or a text to continue, may begin with. An example is
 * `/script tokens=200 delay_ms=20 nonce=abc`.
 */
export function readScript(text: string, param: ScriptedField = "messages"): Script | undefined {
  try {
    return scriptIn(text);
  } catch (error) {
    throw error instanceof Problem ? scriptFault(error.message, param) : error;
  }
}

function scriptIn(text: string): Script | undefined {
  if (!/^\/script(?!\S)/.test(text)) return undefined;
  const [line = ""] = text.split(/\r?\n/, 1);
  const given = readWords(line);
  const tokens = wholeNumber(given, "tokens", scriptTokensMax) ?? defaultTokens;
  const script = {
    tokens,
    nonce: name(given, "nonce") ?? defaultNonce,
    think: wholeNumber(given, "think", scriptTokensMax) ?? 0,
    firstMs: wholeNumber(given, "first_ms", scriptFirstMsMax) ?? 0,
    delayMs: wholeNumber(given, "delay_ms", scriptDelayMsMax) ?? 0,
    failAt: wholeNumber(given, "fail_at", tokens),
    stallAt: wholeNumber(given, "stall_at", tokens),
    exitAt: wholeNumber(given, "exit_at", tokens),
    tool: name(given, "tool"),
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

function name(given: ReadonlyMap<string, string>, word: string): string | undefined {
  const value = given.get(word);
  if (value === undefined || namePattern.test(value)) return value;
  throw new Problem(`'${word}' must be 1 to 64 letters, digits, underscores or hyphens`);
}

function jsonObject(given: ReadonlyMap<string, string>, word: string): string | undefined {
  const value = given.get(word);
  if (value === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return value;
  } catch {
    // The throw below reports it, like any other text that is not an object.
  }
  throw new Problem(`'${word}' must be a JSON object without spaces`);
}
