import type { Fault } from "#shared/fault/fault.ts";
import type { Render } from "../../../dispatch/render-events.ts";
import type { StreamEnds } from "../../../dispatch/write-stream.ts";
import { endsOfChunks } from "../../stream-ends.ts";
import { inWordsOfResponses } from "../in-words-of-responses.ts";
import type { ResponseTerms } from "../response-terms.ts";
import { ResponseStream } from "./response-stream.ts";
import { WholeResponse } from "./whole-response.ts";

const nothing = new Uint8Array();

/**
 * How a response is rendered, what is told of its faults, and how its stream ends: the event that says it is whole has all of it, and one that says
 * it failed is numbered like all others. A request that goes to another machine begins anew.
 */
export function renderResponse(
  terms: ResponseTerms,
  { streamed }: { readonly streamed: boolean },
): {
  readonly render: Render;
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
