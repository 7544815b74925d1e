import { Fault } from "#shared/fault/fault.ts";
import type { Usage } from "#shared/protocol/answer-events.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { AnswerRenderer } from "../../jobs/answer-parts.ts";
import { endsOfChunks } from "../../chats/render-completions.ts";
import type { Rendering } from "../../requests/endpoint.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import { eventStream, type MediaAnswer } from "./media-request.ts";

const nothing = new Uint8Array();
const adaptFault = (fault: Fault): Fault => fault;

/** The parts of every endpoint whose requests a model's server answers by itself. */
export const ofMedia = {
  idPrefix: "media-",
  rendering: ({ form }: ReadRequest<MediaAnswer>) => renderMedia(form),
};

/** Returns the rendering of an answer about speech or images. */
function renderMedia({ form, type }: MediaAnswer): Rendering {
  const ends = { ...endsOfChunks, whole: nothing };
  if (form === "transcript") return { render: transcriptStream, ends, adaptFault };
  if (form === "audio" && type === eventStream) return { render: audioEvents, ends, adaptFault };
  if (form !== "audio") return { render: wholeMedia, ends: endsOfChunks, media: type, adaptFault };
  // Audio has no place for a comment or an error: its status waits for the first piece, and a failure cuts it off.
  const silent = (): Uint8Array => nothing;
  const bare = { media: type, isBare: true, whole: nothing, failed: silent, waiting: silent };
  return { render: () => audioStream(bare), ends: bare, adaptFault };
}

/** Gathers an answer that its client gets as the runtime wrote it, in one piece. */
function wholeMedia(): AnswerRenderer {
  const pieces: Uint8Array[] = [];
  return {
    push(events) {
      for (const event of events) if (event.kind === "text") pieces.push(Buffer.from(event.text));
      return nothing;
    },
    end: () => Buffer.concat(pieces),
  };
}

/** Passes audio on as it comes. Sets the media type of the answer to that of the first piece, where the runtime told it. */
function audioStream(answer: { media: string }): AnswerRenderer {
  let hasBegun = false;
  return {
    push(events) {
      const pieces = events.filter((event) => event.kind === "audio");
      if (!hasBegun) answer.media = pieces[0]?.type ?? answer.media;
      hasBegun ||= pieces.length > 0;
      return Buffer.concat(pieces.map(({ bytes }) => bytes));
    },
    end() {
      if (hasBegun) return nothing;
      throw noAudio();
    },
  };
}

function noAudio(): Fault {
  return new Fault("upstream_error", { message: "The runtime answered without any audio." });
}

/** Renders audio as OpenAI's events, in base64. */
function audioEvents(): AnswerRenderer {
  let hasBegun = false;
  let usage: ReturnType<typeof usageOf> | undefined;
  return {
    push(events) {
      let written = "";
      for (const event of events) {
        if (event.kind === "usage") usage = usageOf(event);
        if (event.kind !== "audio") continue;
        hasBegun = true;
        const audio = Buffer.from(event.bytes).toString("base64");
        written += eventOf({ type: "speech.audio.delta", audio });
      }
      return Buffer.from(written);
    },
    end() {
      if (hasBegun) return Buffer.from(eventOf({ type: "speech.audio.done", usage }));
      throw noAudio();
    },
  };
}

/** Renders the text of a recording as OpenAI's events: its pieces, then all of it. */
function transcriptStream(): AnswerRenderer {
  let text = "";
  let usage: ReturnType<typeof usageOf> | undefined;
  return {
    push(events) {
      let written = "";
      for (const event of events) {
        if (event.kind === "usage") usage = usageOf(event);
        if (event.kind !== "text") continue;
        text += event.text;
        written += eventOf({ type: "transcript.text.delta", delta: event.text });
      }
      if (text.length > limits.wholeAnswerCharactersMax) {
        const message = `The text is longer than ${limits.wholeAnswerCharactersMax} characters (wholeAnswerCharactersMax); send the recording in parts.`;
        throw new Fault("invalid_value", { message, param: "file" });
      }
      return Buffer.from(written);
    },
    end: () => Buffer.from(eventOf({ type: "transcript.text.done", text, usage })),
  };
}

function usageOf({ promptTokens, completionTokens, seconds }: Usage) {
  if (seconds !== undefined) return { type: "duration", seconds };
  const total_tokens = promptTokens + completionTokens;
  return { type: "tokens", input_tokens: promptTokens, output_tokens: completionTokens, total_tokens };
}

function eventOf(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}
