import type { AnswerHead, AnswerRenderer, AnswerTimings } from "../../jobs/answer-parts.ts";
import type { EmitEvent } from "./output-items.ts";
import { ResponseOutput } from "./response-output.ts";
import type { MadeResponse } from "./kept-responses.ts";
import { writeTurn } from "./stored-turns.ts";
import type { ResponseTerms } from "./response-request.ts";
import type { OwnSampling } from "#shared/protocol/model.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { FieldNames, Fault } from "#shared/fault/fault.ts";
import { faultBody } from "../../http/answer-faults.ts";
import { endsOfChunks } from "../../chats/render-completions.ts";
import type { Rendering } from "../../requests/endpoint.ts";

/** The fields of a response that has no output yet. */
const startedResponse = {
  status: "in_progress",
  completed_at: null,
  incomplete_details: null,
  output: [],
  usage: null,
} as const;

/** The metadata of a response, and the sampling of its model on that machine, where the request says none. */
export interface ResponseHead extends AnswerHead {
  readonly sampling?: OwnSampling | undefined;
}

/**
 * Returns the response as JSON, with the fields of its answer so far. `store` stands before all fields that may hold names
 * of the client's: see `withoutStore`.
 */
function writtenResponse(
  head: ResponseHead,
  { repeated, begun, sampling }: ResponseTerms,
  answer: (ReturnType<ResponseOutput["end"]> & { readonly completed_at: number | null }) | typeof startedResponse,
): string {
  const { id, createdSeconds: created_at, model } = head;
  const { output, usage, ...fields } = answer;
  const { temperature = null, top_p = null } = { ...head.sampling, ...sampling };
  const begin = {
    id,
    object: "response",
    created_at,
    model,
    error: null,
    store: begun !== undefined,
    temperature,
    top_p,
    ...fields,
  };
  return `${JSON.stringify(begin).slice(0, -1)},${repeated},"output":${JSON.stringify(output)},"usage":${JSON.stringify(usage)}}`;
}

/**
 * Returns the last bytes of a response that could not be stored after all. The first `store` of a line is the response's
 * own: before it are only texts, in which quotes are escaped.
 */
export function withoutStore(last: Uint8Array): Uint8Array {
  const text = Buffer.from(last).toString();
  return Buffer.from(text.replaceAll(/(^|\n)([^\n]*?"store":)true/g, "$1$2false"));
}

/**
 * Renders a response: whole, or as a stream of named server-sent events, each with a sequence number. This API has no
 * `data: [DONE]`.
 */
export class ResponseRenderer implements AnswerRenderer {
  readonly #head: ResponseHead;
  readonly #terms: ResponseTerms;
  readonly #streamed: boolean;
  readonly #output: ResponseOutput;
  /** The response, once it is complete. */
  made: MadeResponse | undefined;
  #written = "";
  #number = 0;

  constructor(head: ResponseHead, terms: ResponseTerms, { streamed }: { readonly streamed: boolean }) {
    this.#head = head;
    this.#terms = terms;
    this.#streamed = streamed;
    const emit: EmitEvent = (type, fields) => this.#emit(type, JSON.stringify(fields));
    this.#output = new ResponseOutput(streamed ? emit : () => undefined, terms, head.id);
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    if (events.length > 0) this.#begin();
    for (const event of events) this.#output.take(event);
    return this.#taken();
  }

  end(timings?: AnswerTimings): Uint8Array {
    this.#begin();
    const { id, createdSeconds } = this.#head;
    const { begun } = this.#terms;
    const answer = this.#output.end();
    // By the machine's own time, so that each rendering of an answer has the same.
    const endedAt = timings && createdSeconds + Math.round(timings.totalMs / 1_000);
    const completed_at = (answer.status === "completed" && endedAt) || null;
    const written = writtenResponse(this.#head, this.#terms, { ...answer, completed_at });
    this.made = begun && { id, text: writeTurn(id, begun, written), conversation: begun.conversation };
    if (!this.#streamed) return Buffer.from(written);
    this.#emit(`response.${answer.status}`, `{"response":${written}}`);
    return this.#taken();
  }

  /** Returns the event of an answer that failed midway. */
  failed(fault: Fault): Uint8Array {
    const { error } = faultBody(fault);
    const { code, message, param } = error;
    this.#emit("error", JSON.stringify({ code, message, param, error }));
    return this.#taken();
  }

  #begin(): void {
    if (!this.#streamed || this.#number > 0) return;
    const started = `{"response":${writtenResponse(this.#head, this.#terms, startedResponse)}}`;
    this.#emit("response.created", started);
    this.#emit("response.in_progress", started);
  }

  #emit(type: string, fields: string): void {
    const number = this.#number++;
    this.#written += `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},${fields.slice(1)}\n\n`;
  }

  #taken(): Uint8Array {
    const bytes = Buffer.from(this.#written);
    this.#written = "";
    return bytes;
  }
}

/** Maps the path of a chat field, as machines name it, to the field of the Responses API that it came from. */
const fieldsOfChats: FieldNames = [
  [/^messages(?:$|\[.*)/, "input"],
  [/^max_tokens$/, "max_output_tokens"],
  [/^response_format(?:\.json_schema)?/, "text.format"],
  [/^reasoning_effort$/, "reasoning.effort"],
  [/^logprobs$/, "include"],
  [/^tools\[.*/, "tools"],
];

export function faultForResponses(fault: Fault): Fault {
  return fault.withFieldOf(fieldsOfChats);
}

/**
 * Returns the renderer of a response, the translation of its faults, and the last bytes of its stream. The event of a
 * complete response contains the whole response. The event of a failed one has a sequence number like all others. A
 * failover to another machine starts a new rendering.
 */
export function renderResponse(terms: ResponseTerms, form: { readonly streamed: boolean }): Rendering {
  let latest: ResponseRenderer | undefined;
  return {
    render: (head, { chosen }) =>
      (latest = new ResponseRenderer({ ...head, sampling: chosen.model.sampling }, terms, form)),
    // Its client's next request, at any gateway, finds it. The last bytes say so if it could not be stored.
    async keep(keyId, { responses }) {
      const made = latest?.made;
      return made === undefined || (await responses.store(keyId, made)) ? undefined : withoutStore;
    },
    ends: { ...endsOfChunks, whole: new Uint8Array(), failed: (fault) => (latest ?? endsOfChunks).failed(fault) },
    adaptFault: faultForResponses,
  };
}
