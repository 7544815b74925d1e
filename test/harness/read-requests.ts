import type { AnswerHead, AnswerRenderer, JobOffer } from "../../services/gateway/jobs/answer-parts.ts";
import { apis } from "../../services/gateway/apis/apis.ts";
import { readingThread, reads } from "../../services/gateway/apis/reads.ts";
import type { ChatForm } from "../../services/gateway/chats/read-chat.ts";
import type { Rendering } from "../../services/gateway/requests/endpoint.ts";
import * as reading from "../../services/gateway/requests/read-request.ts";

/** Reads a request of this kind as a gateway does. */
export function readRequest(kind: string, bytes: Buffer, options?: reading.ReadOptions) {
  return reading.readRequest(reads, { kind, bytes, ...options }) as reading.ReadRequest<ChatForm>;
}

export function openReader(promptSeed: number): reading.RequestReader {
  return new reading.RequestReader(promptSeed, { reads, thread: readingThread });
}

/** The rendering of an answer to a request of this kind, with this part for its answer. */
export function renderingOf(kind: string, form: unknown, { streamed }: { readonly streamed: boolean }): Rendering {
  const endpoint = apis.flatMap(({ endpoints }) => endpoints).find((each) => each.kind === kind);
  if (endpoint === undefined) throw new Error(`no API has an endpoint ${kind}`);
  return endpoint.rendering({ form, stream: streamed } as reading.ReadRequest, {
    id: "req_1",
    costOf: () => undefined,
  });
}

/** The renderer of that answer, by a model without a sampling of its own. */
export function rendererOf({ render }: Rendering, head: AnswerHead): AnswerRenderer {
  return render(head, { chosen: { model: {} } } as JobOffer);
}
