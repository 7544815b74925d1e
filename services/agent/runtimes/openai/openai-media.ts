import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import type { MediaBody } from "#shared/protocol/media-body.ts";
import { readStream, type RuntimeAnswer, type SentEvent, sentEvents } from "../runtime-answer.ts";
import { type SentForm, type RuntimeConnection, wholeText } from "../runtime-connection.ts";
import type { EmitEvents, MediaRun } from "../runtime.ts";
import type { UsageEvent } from "./openai-answer.ts";
import { answerFault, invalidEvent } from "./openai-fault.ts";
import { optionalText, passesProbe } from "./openai-models.ts";

/** The longest answer in JSON of which the usage is read. Images are passed on unread. */
const readCharactersMax = 1024 * 1024;

/** Asks a server about speech or images on the path of the request, and emits its answer as it comes. */
export async function openAiMedia(
  { body, traceparent, signal, onProgress }: MediaRun,
  { connection, model }: { readonly connection: RuntimeConnection; readonly model: { readonly name: string } },
  emit: EmitEvents,
): Promise<void> {
  onProgress("prefill");
  const { path, fields, files } = body;
  const sent = files.length === 0 ? { body: { model: model.name, ...fields } } : { form: formOf(model.name, body) };
  const answer = connection.stream({ path, ...sent, isBinary: body.answer === "audio", traceparent, signal });
  const usage = await readers[body.answer](answer, emit, body);
  await emit([{ kind: "finish", reason: "stop" }, ...(usage ? [usage] : [])]);
}

type Reader = (answer: RuntimeAnswer, emit: EmitEvents, body: MediaBody) => Promise<UsageEvent | undefined>;

const readers: Readonly<Record<MediaBody["answer"], Reader>> = {
  async json(answer, emit, { fields }) {
    const decoder = new TextDecoder();
    let start = "";
    await answer.read((piece) => {
      assertType(answer, answer.mediaType === "application/json", "JSON");
      const text = decoder.decode(piece, { stream: true });
      if (start.length <= readCharactersMax) start += text;
      return emit([{ kind: "text", text }]);
    });
    if (start.length > readCharactersMax) return undefined;
    const parsed = jsonIn(start);
    assertType(answer, typeof parsed === "object" && parsed !== null, "JSON");
    if (fields["include[]"] !== undefined && !("logprobs" in Object(parsed))) {
      const message = "The server of this model reports no logprobs; send the request without 'include[]'.";
      throw new Fault("unsupported_value", { message, param: "include[]" });
    }
    return usageIn(parsed);
  },

  async text(answer, emit, { fields }) {
    const text = await wholeText(answer);
    const isJson = answer.mediaType === "application/json";
    // vLLM and others answer with JSON where a plain text was asked for.
    const plain = isJson ? textIn(jsonIn(text)) : text;
    // whisper.cpp calls a plain text HTML, which is otherwise a page of a proxy.
    const isPage = /html/.test(answer.mediaType) && /^\s*</.test(text);
    const isOther = isPage || /audio|image|video/.test(answer.mediaType);
    const isFit = isJson ? fields["response_format"] === "text" : !isOther;
    assertType(answer, isFit && plain !== undefined, "the text");
    await emit([{ kind: "text", text: plain ?? "" }]);
    return undefined;
  },

  async transcript(answer, emit) {
    let usage: UsageEvent | undefined;
    let hasText = false;
    const events: AnswerEvent[] = [];
    const splitter = sentEvents((sent) => {
      const piece = pieceIn(sent, hasText);
      usage = piece.usage ?? usage;
      if (piece.text === "") return;
      hasText = true;
      events.push({ kind: "text", text: piece.text });
    });
    const assertEvents = (): void => {
      if (answer.mediaType === "text/event-stream") return;
      const message = "The server of this model does not stream transcriptions; send the request without 'stream'.";
      throw new Fault("unsupported_value", { message, param: "stream" });
    };
    // `onPiece` comes before the events of a piece are emitted, and its fault replaces that of a piece without events.
    await readStream(answer, { splitter, events, onPiece: assertEvents }, emit);
    return usage;
  },

  async audio(answer, emit) {
    await answer.read((bytes) => {
      const type = answer.mediaType.startsWith("audio/") ? answer.mediaType : undefined;
      const isUnnamed = answer.mediaType === "" || answer.mediaType === "application/octet-stream";
      assertType(answer, type !== undefined || isUnnamed, "audio");
      return emit([{ kind: "audio", type, bytes }]);
    });
    return undefined;
  },
};

function assertType({ mediaType }: RuntimeAnswer, isRight: boolean, wanted: string): void {
  if (isRight) return;
  const message = `The runtime did not answer with ${wanted}.`;
  throw new Fault("upstream_error", { message, internal: `it answered with '${mediaType.slice(0, 100)}'` });
}

const count = z.int().nonnegative().optional().catch(undefined);
const second = z.number().nonnegative().max(1_000_000).optional().catch(undefined);

/** An answer or event, with the usage in the words of OpenAI's old and new API, or in seconds. */
const told = z.object({
  usage: z
    .object({
      input_tokens: count,
      output_tokens: count,
      prompt_tokens: count,
      completion_tokens: count,
      seconds: second,
    })
    .optional()
    .catch(undefined),
  duration: second,
});

/** Returns the tokens that an answer tells, or the seconds of a recording. */
function usageIn(answer: unknown): UsageEvent | undefined {
  const { usage = {}, duration } = told.safeParse(answer).data ?? {};
  const promptTokens = usage.input_tokens ?? usage.prompt_tokens;
  const completionTokens = usage.output_tokens ?? usage.completion_tokens;
  if (promptTokens !== undefined && completionTokens !== undefined)
    return { kind: "usage", promptTokens, completionTokens };
  const seconds = usage.seconds ?? duration;
  if (seconds === undefined) return undefined;
  return { kind: "usage", promptTokens: 0, completionTokens: 0, seconds: Math.ceil(seconds) };
}

function textIn(answer: unknown): string | undefined {
  return typeof answer === "string" ? answer : z.object({ text: z.string() }).safeParse(answer).data?.text;
}

/** An event of OpenAI's, whose last one repeats the text, a chunk of vLLM's, or a segment of speaches'. */
const transcriptEvent = z.object({
  error: z.unknown().optional(),
  type: z.unknown().optional(),
  delta: optionalText,
  text: optionalText,
  choices: z
    .array(z.object({ delta: z.object({ content: z.string().nullish() }) }))
    .optional()
    .catch(undefined),
});

/** Returns the text that an event adds to a transcription, and its usage. */
function pieceIn(sent: SentEvent, hasText: boolean): { text: string; usage?: UsageEvent | undefined } {
  if (sent.kind === "comment" || sent.data === "[DONE]") return { text: "" };
  const event = jsonIn(sent.data);
  const { success, data } = transcriptEvent.safeParse(event);
  if (!success) throw invalidEvent("an event of a transcription is no JSON object");
  const { error, type, delta, text, choices = [] } = data;
  if (error !== undefined) throw answerFault(error, { hasOutput: hasText });
  const usage = usageIn(event);
  if (choices[0] !== undefined) return { text: choices[0].delta.content ?? "", usage };
  if (type === "transcript.text.delta") return { text: delta ?? "", usage };
  const isNew = type === undefined || (type === "transcript.text.done" && !hasText);
  return { text: (isNew && text) || "", usage };
}

/** Returns the form of a request, with the files as they came. */
function formOf(
  model: string,
  { fields, files, contents }: Pick<MediaBody, "fields" | "files" | "contents">,
): SentForm {
  const boundary = `trunkline-${randomBytes(16).toString("hex")}`;
  const part = (head: string, content: Uint8Array): readonly Uint8Array[] => {
    return [Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`), content, lineEnd];
  };
  const texts = Object.entries<unknown>({ model, ...fields }).flatMap(([name, value]) =>
    [value].flat().flatMap((each) => part(`name="${name}"`, Buffer.from(String(each)))),
  );
  const parts = files.flatMap(({ field, name, type }, at) => {
    const head = `name="${field}"; filename="${escaped(name)}"\r\nContent-Type: ${escaped(type)}`;
    return part(head, contents[at] ?? new Uint8Array());
  });
  const pieces = [...texts, ...parts, Buffer.from(`--${boundary}--\r\n`)];
  return { type: `multipart/form-data; boundary=${boundary}`, pieces };
}

const lineEnd = Buffer.from("\r\n");

/** Escapes a name as browsers do, so that it ends neither its quotes nor its line. */
function escaped(name: string): string {
  return name.replaceAll(/["\\\r\n]/g, (sign) => encodeURIComponent(sign));
}

/** Half a second of silence as a WAV file: its head, for 16,000 samples a second of 16 bits, and the samples. */
const silence = Buffer.concat([
  Buffer.from("UklGRqQ+AABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YYA+AAA=", "base64"),
  Buffer.alloc(16_000),
]);

/** Returns true if the model transcribes, by a recording of silence. Rejects if the server is busy or loads its model. */
export function probeTranscription(connection: RuntimeConnection, model: string, signal: AbortSignal) {
  const file = { field: "file", name: "silence.wav", type: "audio/wav", bytes: silence.byteLength };
  const form = formOf(model, { fields: {}, files: [file], contents: [silence] });
  return passesProbe(connection, z.object({ text: z.string() }), { path: "/v1/audio/transcriptions", form, signal });
}
