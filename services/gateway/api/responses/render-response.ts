import type { Fault } from "#shared/fault/fault.ts";
import type { AnswerHead, AnswerRenderer } from "../../jobs/render-answer.ts";
import type { StreamEnds } from "../../jobs/write-stream.ts";
import { endsOfChunks } from "../answer-renderer.ts";
import { inWordsOfResponses } from "./in-words-of-responses.ts";
import type { ResponseTerms } from "./response-terms.ts";
import { ResponseStream } from "./response-stream.ts";
import { WholeResponse } from "./whole-response.ts";

const nothing = new Uint8Array();

/**
 * Returns the renderer of a response, the translation of its faults, and the last bytes of its stream. The event of a
 * complete response contains the whole response. The event of a failed one has a sequence number like all others. A
 * failover to another machine starts a new rendering.
 */
export function renderResponse(
  terms: ResponseTerms,
  { streamed }: { readonly streamed: boolean },
): {
  readonly render: (head: AnswerHead) => AnswerRenderer;
  readonly ends: StreamEnds;
  readonly told: (fault: Fault) => Fault;
} {
  let stream: ResponseStream | undefined;
  return {
    render: (head) => (streamed ? (stream = new ResponseStream(head, terms)) : new WholeResponse(head, terms)),
    ends: { whole: nothing, failed: (fault) => (stream ?? endsOfChunks).failed(fault) },
    told: inWordsOfResponses,
  };
}
