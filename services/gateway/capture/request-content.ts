import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { CapturedPart } from "#shared/records/captured-content.ts";
import type { ReadRequest } from "../requests/read-request.ts";

/** Bytes of the content of one request; the rest is cut off. */
export const capturedBytesMax = 1024 * 1024;
/** Bytes of these for the prompt, so that the answer has the rest. */
const promptBytesMax = capturedBytesMax * 0.75;
/** Bytes of the content of all requests under way at a gateway. Without room a content is cut off where it is. */
export const capturingBytesMax = 64 * capturedBytesMax;
/** Bytes of a body that are looked at: 16 MiB take 40 ms. */
const lookedAtMax = 16 * capturedBytesMax;
/** Parts of an answer: one of each kind for each choice, and the tool calls. */
const partsMax = 1_000;
/** Characters of a part that may be in pieces as they came. A piece of one token takes 14 times its length. */
const looseMax = 1_024;

/** An image in a body of JSON, where no text of a person can stand. Where the body is looked at no further it has no end. */
const dataUrl = /(?<!\\)"url":"data:(image\/[\w.+-]+)[;,][^"\\]*(?:"|$)/gi;
/** Images come as JSON with their bytes, which are not kept. */
const askedImages = '{"path":"/v1/images/';

/** The content of one request of a captured key: its prompt, and the part of its answer that was passed on so far. */
export class RequestContent {
  isCut = false;
  /** The body of the job as JSON, or its beginning; undefined until it is read. */
  #prompt: string | undefined;
  #promptIsCut = false;
  /** `loose` is the end of a text that is in pieces. */
  readonly #parts = new Map<string, CapturedPart & { loose: string }>();
  readonly #room: { heldBytes: number };
  #heldBytes = 0;
  #promptBytes = 0;

  /** `room` is the memory that the content of all requests under way takes. */
  constructor(room: { heldBytes: number }) {
    this.#room = room;
  }

  /** Takes the prompt of a request, in the form of its job, with the types of files in place of their bytes. */
  asks<Asked extends Pick<ReadRequest, "kind" | "body">>(asked: Asked): Asked {
    const { buffer, byteOffset, byteLength } = asked.body;
    const body = Buffer.from(buffer, byteOffset, Math.min(byteLength, lookedAtMax));
    // The head of a media job stands behind its length, before the bytes of its files.
    const json = asked.kind === "media" ? body.subarray(4, 4 + body.readUInt32LE()) : body;
    this.isCut = json === body && byteLength > lookedAtMax;
    const named = json.toString().replace(dataUrl, (url, type) => `"url":"${type}, ${url.length - 8} characters"`);
    this.#prompt = this.#keep(named, promptBytesMax);
    this.#promptBytes = this.#heldBytes;
    this.#promptIsCut = this.isCut;
    return asked;
  }

  /** Begins the answer; anew where another machine gives all of it. */
  begins(): void {
    this.#parts.clear();
    this.isCut = this.#promptIsCut;
    this.#release(this.#heldBytes - this.#promptBytes);
  }

  /** Takes pieces of the answer. */
  delivers(events: readonly AnswerEvent[]): void {
    for (const event of events) {
      const [kind, text = ""] = textOf(event);
      this.isCut ||= this.#parts.size > partsMax;
      if (kind === undefined || this.#parts.size > partsMax || this.#prompt?.startsWith(askedImages)) continue;
      const { choice = 0, index = 0 }: { choice?: number | undefined; index?: number; kind: string } = event;
      const part = this.#parts.getOrInsertComputed(`${choice} ${kind} ${index}`, () => {
        return { kind, choice, text: "", loose: "" };
      });
      part.loose += this.#keep(text, capturedBytesMax);
      if (part.loose.length < looseMax) continue;
      part.text += Buffer.from(part.loose).toString();
      part.loose = "";
    }
  }

  /** Returns the content as JSON; undefined for a request that was not read. */
  json(): string | undefined {
    if (this.#prompt === undefined) return undefined;
    const prompt = this.#promptIsCut ? JSON.stringify(this.#prompt) : this.#prompt;
    const answer = [...this.#parts.values()].map(({ loose, ...part }) => ({ ...part, text: part.text + loose }));
    return `{"prompt":${prompt},"answer":${JSON.stringify(answer)},"cut":${this.isCut}}`;
  }

  /** Gives back the memory of the content. */
  end(): void {
    this.#release(this.#heldBytes);
  }

  #release(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#room.heldBytes -= bytes;
  }

  /** Takes a text, or the beginning that there is room for. */
  #keep(text: string, bytesMax: number): string {
    const whole = Buffer.from(text);
    const left = Math.min(bytesMax - this.#heldBytes, capturingBytesMax - this.#room.heldBytes);
    const kept = whole.subarray(0, Math.max(0, left));
    this.isCut ||= kept.byteLength < whole.byteLength;
    this.#heldBytes += kept.byteLength;
    this.#room.heldBytes += kept.byteLength;
    return kept.toString();
  }
}

/** Returns the text of an event and the kind of its part. Vectors, scores and audio have none. */
function textOf(event: AnswerEvent): readonly [kind?: CapturedPart["kind"], text?: string] {
  if (event.kind === "text" || event.kind === "reasoning") return [event.kind, event.text];
  if (event.kind === "tool-call-start") return ["tool_call", `${event.name} `];
  return event.kind === "tool-call-delta" ? ["tool_call", event.arguments] : [];
}
