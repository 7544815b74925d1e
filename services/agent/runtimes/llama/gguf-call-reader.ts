import type { CallSyntax } from "./gguf-call-syntax.ts";
import { JsonScan } from "./json-span.ts";

/** Bounds the text before the JSON of a call. No model needs as much to name a tool. */
const headCharactersMax = 1_000;

/** Collects one call as a model writes it: the text before its JSON, and the JSON. */
export class CallReader {
  /** True if the JSON has no mark before it, and may turn out to be an answer instead of a call. */
  readonly bare: boolean;
  readonly #scan = new JsonScan();
  #head = "";
  #json = "";

  constructor(options: { readonly bare: boolean }) {
    this.bare = options.bare;
  }

  get written(): string {
    return this.#head + this.#json;
  }

  /** Takes the next piece. Returns the text after the call if the call ends in this piece. */
  push(piece: string): string | undefined {
    const start = this.#json === "" ? piece.search(/[{[]/) : 0;
    if (start < 0) {
      this.#head += piece;
      return this.#head.length > headCharactersMax ? "" : undefined;
    }
    this.#head += piece.slice(0, start);
    const json = piece.slice(start);
    const length = this.#scan.push(json);
    this.#json += json.slice(0, length);
    return length === undefined ? undefined : json.slice(length);
  }

  /** Returns the written calls with their arguments as JSON text, or undefined if the text is not a call. */
  calls({ form }: CallSyntax): { readonly name: string; readonly arguments: string }[] | undefined {
    const value = parsed(this.#json);
    if (form.kind === "named") {
      const name = /^\s*([\w.-]+)/.exec(this.#head)?.[1];
      return name === undefined || !isObject(value) ? undefined : [{ name, arguments: JSON.stringify(value) }];
    }
    const calls = (Array.isArray(value) ? value : [value]).map((each: unknown) => {
      if (!isObject(each)) return undefined;
      const [name, given] = [each[form.nameKey], each[form.argumentsKey] ?? {}];
      return typeof name === "string" && isObject(given) ? { name, arguments: JSON.stringify(given) } : undefined;
    });
    const read = calls.filter((call) => call !== undefined);
    return read.length === calls.length && read.length > 0 ? read : undefined;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
