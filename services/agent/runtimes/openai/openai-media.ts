import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { SentEvent } from "#shared/process/cut-stream.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import type { MediaBody } from "#shared/protocol/media-body.ts";
import { readStream, type RuntimeAnswer, sentEvents } from "../runtime-answer.ts";
import type { Question, RuntimeConnection } from "../runtime-connection.ts";
import type { EmitEvents, MediaRun } from "../runtime.ts";
import { answerFault, invalidEvent } from "./openai-fault.ts";

/** The longest answer of which the usage is read, and the longest text that is not JSON. Images are passed on unread. */
const readBytesMax = 1024 * 1024;

/** Asks a server about speech or images on the path of the request, and emits its answer as it comes. */
export async function openAiMedia(
  { body, signal, onProgress }: MediaRun,
  { connection, model }: { readonly connection: RuntimeConnection; readonly model: { readonly name: string } },
  emit: EmitEvents,
): Promise<void> {
  onProgress("prefill");
  const answer = connection.stream({ ...questionOf(body, model.name), isBinary: body.answer === "audio", signal });
  const usage = await readers[body.answer](answer, emit, body);
  const told = usage === undefined ? [] : [usage];
  await emit([{ kind: "finish", reason: "stop" }, ...told]);
}

type UsageEvent = Extract<AnswerEvent, { kind: "usage" }>;
type Reader = (answer: RuntimeAnswer, emit: EmitEvents, body: MediaBody) => Promise<UsageEvent | undefined>;

const readers: Readonly<Record<MediaBody["answer"], Reader>> = {
  async json(answer, emit) {
    const decoder = new TextDecoder();
    let start = "";
    let isShort = true;
    await answer.read((piece) => {
      assertType(answer, answer.mediaType === "application/json", "JSON");
      const text = decoder.decode(piece, { stream: true });
      isShort &&= start.length + text.length <= readBytesMax;
      if (isShort) start += text;
      return emit([{ kind: "text", text }]);
    });
    if (!isShort) return undefined;
    const parsed = jsonIn(start);
    assertType(answer, typeof parsed === "object" && parsed !== null, "JSON");
    return usageIn(parsed);
  },

  async text(answer, emit, { fields }) {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    await answer.read((piece) => {
      pieces.push(piece);
      bytes += piece.byteLength;
      assertType(answer, bytes <= readBytesMax, `a text of at most ${readBytesMax} bytes (readBytesMax)`);
      return undefined;
    });
    const text = Buffer.concat(pieces).toString();
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
    const events = sentEvents();
    let usage: UsageEvent | undefined;
    let hasText = false;
    const assertEvents = (): void => {
      if (answer.mediaType === "text/event-stream") return;
      const message = "The server of this model does not stream transcriptions; send the request without 'stream'.";
      throw new Fault("unsupported_value", { message, param: "stream" });
    };
    const splitter: typeof events = {
      push(piece, onItem) {
        assertEvents();
        events.push(piece, onItem);
      },
      end: (onItem) => events.end(onItem),
    };
    const read = (event: SentEvent, into: AnswerEvent[]): void => {
      const piece = pieceIn(event, hasText);
      usage = piece.usage ?? usage;
      if (piece.text === "") return;
      hasText = true;
      into.push({ kind: "text", text: piece.text });
    };
    await readStream(answer, { splitter, read, onPiece: () => undefined }, emit);
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
  throw new Fault("upstream_error", {
    message: `The runtime did not answer with ${wanted}.`,
    internal: `it answered with '${mediaType.slice(0, 100)}'`,
  });
}

const tokens = z.int().nonnegative();
const told = z.object({
  usage: z.union([
    z.object({ input_tokens: tokens, output_tokens: tokens }),
    z.object({ prompt_tokens: tokens, completion_tokens: tokens }),
  ]),
});

const second = z.number().nonnegative().max(1_000_000);
const lasting = z.union([
  z.object({ usage: z.object({ seconds: second }) }).transform(({ usage: { seconds } }) => seconds),
  z.object({ duration: second }).transform(({ duration }) => duration),
]);

/** Returns the tokens that an answer tells, or the seconds of a recording. */
function usageIn(answer: unknown): UsageEvent | undefined {
  const { data } = told.safeParse(answer);
  if (data === undefined) {
    const { data: seconds } = lasting.safeParse(answer);
    if (seconds === undefined) return undefined;
    return { kind: "usage", promptTokens: 0, completionTokens: 0, seconds: Math.ceil(seconds) };
  }
  const [promptTokens, completionTokens] =
    "input_tokens" in data.usage
      ? [data.usage.input_tokens, data.usage.output_tokens]
      : [data.usage.prompt_tokens, data.usage.completion_tokens];
  return { kind: "usage", promptTokens, completionTokens };
}

function textIn(answer: unknown): string | undefined {
  return z.union([z.string(), z.object({ text: z.string() }).transform(({ text }) => text)]).safeParse(answer).data;
}

const chunk = z.object({ choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }) })) });
const delta = z.object({ type: z.literal("transcript.text.delta"), delta: z.string() });
const done = z.object({ type: z.literal("transcript.text.done"), text: z.string() });

/** Returns the text of an event: OpenAI's delta, a chunk of vLLM's, or a segment of speaches'. */
function pieceIn(sent: SentEvent, hasText: boolean): { text: string; usage?: UsageEvent | undefined } {
  if (sent.kind === "comment" || sent.data === "[DONE]") return { text: "" };
  const event = jsonIn(sent.data);
  if (typeof event !== "object" || event === null) throw invalidEvent("an event of a transcription is no JSON object");
  if ("error" in event) throw answerFault(event.error, { hasOutput: hasText });
  const usage = usageIn(event);
  const [choice] = chunk.safeParse(event).data?.choices ?? [];
  if (choice !== undefined) return { text: choice.delta.content ?? "", usage };
  const next = delta.safeParse(event).data;
  if (next !== undefined) return { text: next.delta };
  const all = done.safeParse(event).data;
  if (all !== undefined) return { text: hasText ? "" : all.text, usage };
  return { text: "type" in event ? "" : (textIn(event) ?? ""), usage };
}

/** Returns the request for a server: JSON, or a form with the files as they came. */
function questionOf(
  { path, fields, files, contents }: Omit<MediaBody, "answer">,
  model: string,
): Pick<Question, "path" | "body" | "form"> {
  if (files.length === 0) return { path, body: { model, ...fields } };
  const boundary = `trunkline-${randomBytes(16).toString("hex")}`;
  const open = (head: string): Uint8Array =>
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`);
  const lineEnd = Buffer.from("\r\n");
  const pieces: Uint8Array[] = [];
  for (const [name, value] of Object.entries({ model, ...fields })) {
    for (const each of Array.isArray(value) ? value : [value])
      pieces.push(open(`name="${name}"`), Buffer.from(`${each}`), lineEnd);
  }
  for (const [at, { field, name, type }] of files.entries()) {
    const head = `name="${field}"; filename="${escaped(name)}"\r\nContent-Type: ${escaped(type)}`;
    pieces.push(open(head), contents[at] ?? new Uint8Array(), lineEnd);
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`));
  return { path, form: { type: `multipart/form-data; boundary=${boundary}`, pieces } };
}

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
export async function probeTranscription(
  connection: RuntimeConnection,
  model: string,
  signal: AbortSignal,
): Promise<boolean> {
  const question = questionOf(
    {
      path: "/v1/audio/transcriptions",
      fields: {},
      files: [{ field: "file", name: "silence.wav", type: "audio/wav", bytes: silence.byteLength }],
      contents: [silence],
    },
    model,
  );
  return connection.ask(z.object({ text: z.string() }), { ...question, signal }).then(
    () => true,
    (error: unknown) => {
      if (Fault.from(error).code === "server_is_overloaded") throw error;
      return false;
    },
  );
}
