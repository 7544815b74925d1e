import type { ServerResponse } from "node:http";
import { Fault } from "#shared/fault/fault.ts";
import { atClose, TimedResponse } from "../edge/timed-response.ts";

/**
 * Returns a controller whose signal aborts when the client leaves before its answer is complete, streamed or not. This
 * signal carries a cancel from the client's socket to the GPU.
 */
export function untilClientLeaves(response: ServerResponse): AbortController {
  const leaving = new AbortController();
  if (response instanceof TimedResponse) response.leaving = leaving;
  atClose(response, () => {
    if (response.writableFinished) return;
    leaving.abort(
      new Fault("client_closed", { message: "The client closed the connection before the answer was complete." }),
    );
  });
  return leaving;
}
