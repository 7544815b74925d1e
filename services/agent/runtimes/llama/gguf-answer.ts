import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { CallSyntax } from "./gguf-call-syntax.ts";
import { CallReader } from "./gguf-call-reader.ts";
import { answerMarks, endMarks, findMark, type Mark } from "./gguf-marks.ts";
import type { Reader } from "./gguf-say.ts";
import type { GgufTemplate } from "./gguf-template.ts";
import { StopCutter } from "../stop-cutter.ts";

interface Asked {
  readonly template: Pick<GgufTemplate, "thoughts" | "onChannels" | "calls">;
  readonly body: ChatBody;
  /** True if the prompt ends inside the model's thoughts. */
  readonly thinking: boolean;
}

/** Reads a model's output and separates thoughts, text and tool calls by the marks of its template. */
export class GgufAnswer implements Reader {
  readonly #marks: readonly Mark[];
  readonly #marksAfterCall: readonly Mark[];
  readonly #calls: CallSyntax | undefined;
  readonly #toolNames: ReadonlySet<string>;
  readonly #callsMax: number;
  readonly #cutter: StopCutter;
  #buffer = "";
  #thinking: boolean;
  #call: CallReader | undefined;
  #callsMade = 0;
  #saidSomething = false;
  /** True at the beginning of an answer or a thought: the template's line breaks there are dropped. */
  #atBeginning: boolean;
  #heldSpace = "";

  constructor({ template, body, thinking }: Asked) {
    const offered = body.tool_choice === "none" ? [] : (body.tools ?? []);
    this.#calls = offered.length > 0 ? template.calls : undefined;
    this.#toolNames = new Set(offered.map((tool) => tool.function.name));
    this.#callsMax = body.parallel_tool_calls === false ? 1 : Infinity;
    this.#cutter = new StopCutter(body.stop ?? []);
    this.#thinking = thinking;
    this.#atBeginning = thinking || this.#calls !== undefined;
    this.#marks = answerMarks(template, this.#calls);
    this.#marksAfterCall = [...this.#marks, ...endMarks(this.#calls)];
  }

  /** True if `text` is part of a mark that separates thoughts, text and calls. */
  reads(text: string): boolean {
    return this.#marksAfterCall.some((mark) => mark.text.includes(text));
  }

  /** True if the answer is complete, even if the model would write more. */
  get complete(): boolean {
    return this.#cutter.stopped || this.#callsMade >= this.#callsMax;
  }

  get thinking(): boolean {
    return this.#thinking;
  }

  push(piece: string): AnswerEvent[] {
    this.#buffer += piece;
    return this.#read(false);
  }

  /** Ends the answer. `cutOff` is true if the answer reached its token limit. */
  end(cutOff: boolean): AnswerEvent[] {
    const events = this.#read(true);
    const open = this.#call;
    if (open !== undefined && !this.complete) {
      if (open.bare) events.push(...this.#text(open.written));
      else if (!cutOff) throw unreadable("a call that does not end");
    }
    const rest = this.#cutter.end();
    return rest === "" ? events : [...events, { kind: "text", text: rest }];
  }

  #read(isLast: boolean): AnswerEvent[] {
    const events: AnswerEvent[] = [];
    while (this.#buffer !== "" && !this.complete) {
      if (this.#call === undefined && this.#mayBeBareCall()) this.#call = new CallReader({ bare: true });
      if (this.#call !== undefined) {
        const rest = this.#call.push(this.#buffer);
        this.#buffer = rest ?? "";
        if (rest !== undefined) events.push(...this.#called(this.#call));
        continue;
      }
      const { upTo, mark } = findMark(this.#buffer, this.#callsMade > 0 ? this.#marksAfterCall : this.#marks, isLast);
      events.push(...this.#say(this.#buffer.slice(0, upTo)));
      this.#buffer = this.#buffer.slice(upTo + (mark?.text.length ?? 0));
      if (mark === undefined) break;
      if (this.#thinking && mark.opens === "call") events.push(...this.#say(mark.text));
      else this.#meet(mark);
    }
    return events;
  }

  #meet(mark: Mark): void {
    if (mark.opens === "call") {
      this.#call = new CallReader({ bare: false });
      return;
    }
    if (mark.opens === "thought") this.#thinking = true;
    if (mark.opens === "answer") this.#thinking = false;
    this.#atBeginning = true;
    this.#heldSpace = "";
  }

  /** True if the buffer may begin a call without a mark: the answer then begins with JSON at its first character. */
  #mayBeBareCall(): boolean {
    if (this.#calls?.begin !== "" || this.#thinking || this.#saidSomething || this.#callsMade > 0) return false;
    return /^\s*[{[]/.test(this.#buffer);
  }

  *#called(reader: CallReader): Generator<AnswerEvent> {
    this.#call = undefined;
    const syntax = this.#calls;
    const calls = syntax === undefined ? undefined : reader.calls(syntax);
    const known = calls?.every(({ name }) => this.#toolNames.has(name)) ?? false;
    if (calls === undefined || (reader.bare && !known)) {
      if (!reader.bare) throw unreadable("a call that makes no sense");
      yield* this.#text(reader.written);
      return;
    }
    for (const call of calls.slice(0, this.#callsMax - this.#callsMade)) {
      const index = this.#callsMade++;
      yield { kind: "tool-call-start", index, name: call.name };
      yield { kind: "tool-call-delta", index, arguments: call.arguments };
    }
    this.#atBeginning = true;
  }

  #say(piece: string): AnswerEvent[] {
    const begun = this.#atBeginning ? piece.trimStart() : piece;
    if (begun === "") return [];
    this.#atBeginning = false;
    return this.#thinking ? this.#think(begun) : this.#text(begun);
  }

  /** Holds back white space at the end of a thought: it belongs to the mark that may follow. */
  #think(piece: string): AnswerEvent[] {
    const text = this.#heldSpace + piece;
    const thought = text.trimEnd();
    this.#heldSpace = text.slice(thought.length);
    return thought === "" ? [] : [{ kind: "reasoning", text: thought }];
  }

  #text(piece: string): AnswerEvent[] {
    this.#saidSomething = true;
    const text = this.#cutter.push(piece);
    return text === "" ? [] : [{ kind: "text", text }];
  }
}

function unreadable(what: string): Fault {
  return new Fault("upstream_error", {
    message: "The model called a tool in a way that could not be understood.",
    internal: `the model wrote ${what}`,
  });
}
