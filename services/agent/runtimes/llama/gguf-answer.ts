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
  /** Whether the prompt left the model in the middle of its thoughts. */
  readonly thinking: boolean;
}

/** Reads what a model writes: thoughts, text and calls, told apart by the marks of its template. */
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
  /** Where an answer or a thought begins, the template's line breaks are not part of it. */
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

  /** Whether a text is part of what tells thoughts, text and calls apart. */
  reads(text: string): boolean {
    return this.#marksAfterCall.some((mark) => mark.text.includes(text));
  }

  /** Whether the answer is complete, whatever the model would still write. */
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

  /** The model has ended, of its own accord or because it was cut off. */
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

  /** A model whose calls have no mark makes one by answering with JSON from its first letter on. */
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

  /** White space at the end of a thought belongs to the mark that may follow. */
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
