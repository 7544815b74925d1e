import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { ChatBody, ToolDefinition } from "#shared/protocol/job-bodies.ts";
import { type Capabilities, type Seam, seamWith } from "#shared/protocol/model.ts";

/** One whole answer of a proof, and then its continuations. */
export interface Trial {
  readonly question: string;
  readonly effort: "none" | undefined;
  readonly tools: boolean;
  /** True if the answer may have a thought, which takes tokens before the text. */
  readonly mayThink: boolean;
}

/** Copying is what a model is surest of, so its likeliest tokens stay the same. The text has rare words and empty lines. */
const copied = [
  "Please copy this text exactly, and write nothing else:",
  "Archaeopteryx and pterodactyl quarrelled loudly.\n\nTheir neighbour, a bookkeeper from Kyrgyzstan, sighed:\n" +
    "- unbelievable;\n- incomprehensible;\n- thoroughly Machiavellian!\n\nThen everybody rehearsed Tchaikovsky.",
].join("\n\n");

/** A tool that no question of a proof needs. */
const idleTool: ToolDefinition = {
  type: "function",
  function: {
    name: "ring_the_bell",
    description: "Rings the bell at the door. Only for a visitor who asks for the bell.",
    parameters: { type: "object", properties: { times: { type: "integer" } } },
  },
};

/** The tokens of text that a proof compares, and the fewest that prove something. */
export const textTokens = 48;
const textTokensMin = 12;
const thoughtTokensMax = 600;
/** Tokens cut anew at a seam may be more than they were. */
const spareTokens = 16;

export function trialsOf(able: Capabilities, questions: readonly string[] = [copied]): Trial[] {
  const efforts = able.thinking ? ([undefined, "none"] as const) : [undefined];
  return (able.tools ? [false, true] : [false]).flatMap((tools) =>
    efforts.flatMap((effort) =>
      questions.map((question) => ({ question, effort, tools, mayThink: able.thinking && effort === undefined })),
    ),
  );
}

/** Returns the chat of a trial: for a whole answer, or for the rest of the one that was heard so far. */
export function chatOf(
  { question, effort, tools, mayThink }: Trial,
  begun?: Pick<Heard, "pieces" | "thought">,
): ChatBody {
  const reasoning = begun?.thought ? { reasoning_content: begun.thought } : {};
  const begunAnswer = begun && { role: "assistant" as const, content: begun.pieces.join(""), ...reasoning };
  return {
    messages: [{ role: "user", content: question }, ...(begunAnswer ? [begunAnswer] : [])],
    max_tokens: textTokens + (begun ? spareTokens : mayThink ? thoughtTokensMax : 0),
    temperature: 0,
    seed: 1,
    ...(effort && { reasoning_effort: effort }),
    ...(tools && { tools: [idleTool] }),
  };
}

/** An answer of a trial, as far as it was read. */
export class Heard {
  readonly pieces: string[] = [];
  thought = "";
  hasCalled = false;
  /** True if the model ended it. */
  isWhole = false;

  take(events: readonly AnswerEvent[]): void {
    for (const event of events) {
      if (event.kind === "text" && event.text !== "") this.pieces.push(event.text);
      if (event.kind === "reasoning") this.thought += event.text;
      if (event.kind === "tool-call-start") this.hasCalled = true;
      if (event.kind === "finish") this.isWhole = event.reason === "stop";
    }
  }

  get text(): string {
    return this.pieces.join("");
  }
}

/** Returns the kind of a whole answer; undefined if it is too short to prove something. */
export function seamOf({ tools }: Trial, whole: Heard): Seam | undefined {
  if (whole.hasCalled || whole.pieces.length < textTokensMin) return undefined;
  return seamWith({ tools, thought: whole.thought !== "" });
}

/**
 * Returns the three places at which an answer is cut: early; in the middle, in mid-word if a token ends there; and late,
 * behind white space if there is some. A delivered answer ends where a token ends, so it is cut nowhere else.
 */
export function cutsOf(pieces: readonly string[]): number[] {
  const places = Array.from({ length: pieces.length - 1 }, (_, at) => at + 1);
  const nearest = (wanted: number, fits: (before: string, after: string) => boolean): number => {
    const near = places.toSorted((a, b) => Math.abs(a - wanted) - Math.abs(b - wanted));
    return near.find((at) => fits(pieces[at - 1] ?? "", pieces[at] ?? "")) ?? near[0] ?? 1;
  };
  const { length } = pieces;
  return [
    nearest(Math.floor(length / 6), () => true),
    nearest(Math.floor(length / 2), (before, after) => /[\p{L}\p{N}]$/u.test(before) && /^[\p{L}\p{N}]/u.test(after)),
    nearest(Math.floor((length * 5) / 6), (before, after) => /\s$/u.test(before) && /^\S/u.test(after)),
  ];
}

/** Returns how a continuation differs from the rest of the whole answer; undefined if it is equal. */
export function differenceOf(whole: Heard, cut: number, heard: Heard): string | undefined {
  const rest = whole.pieces.slice(cut).join("");
  if (heard.thought !== "") return "it thinks again";
  if (heard.hasCalled) return "it calls a tool";
  const { text } = heard;
  if (whole.isWhole ? text === rest && heard.isWhole : text.startsWith(rest)) return undefined;
  if (text.startsWith(whole.text.slice(0, rest.length || 1))) return "it begins anew";
  if (text.startsWith(rest)) return "it does not end where the answer ends";
  let equal = 0;
  while (text[equal] === rest[equal]) equal += 1;
  return `${equal} of ${rest.length} characters are equal`;
}
