import type { ServerResponse } from "node:http";
import { Fault } from "#shared/fault/fault.ts";

/**
 * A controller whose signal aborts when the client goes before its answer is complete, whether or not that is a
 * stream. It is what carries a cancel from the client's socket to the GPU.
 */
export function untilClientLeaves(response: ServerResponse): AbortController {
  const leaving = new AbortController();
  response.once("close", () => {
    if (response.writableFinished) return;
    leaving.abort(
      new Fault("client_closed", { message: "The client closed the connection before the answer was complete." }),
    );
  });
  return leaving;
}
