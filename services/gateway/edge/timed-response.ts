import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";

export const processingHeader = "openai-processing-ms";

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/**
 * An answer that says in its headers how many milliseconds passed from the arrival of its request's head to them. It is
 * the answer's own doing, so that no way of writing one is left out: whole answers, streams, and refusals alike.
 */
export class TimedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  readonly #arrivedAtMs = performance.now();

  get sinceArrivalMs(): number {
    return performance.now() - this.#arrivedAtMs;
  }

  override writeHead(status: number, reasonOrHeaders?: string | Headers, headers?: Headers): this {
    if (!this.headersSent) this.setHeader(processingHeader, String(Math.floor(this.sinceArrivalMs)));
    return typeof reasonOrHeaders === "string"
      ? super.writeHead(status, reasonOrHeaders, headers)
      : super.writeHead(status, reasonOrHeaders);
  }
}

/** How long ago the head of the request arrived that this is the answer to. */
export function sinceArrivalMs(response: ServerResponse): number {
  return response instanceof TimedResponse ? response.sinceArrivalMs : 0;
}
