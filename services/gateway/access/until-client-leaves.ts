import type { ServerResponse } from "node:http";
import { Fault } from "#shared/fault/fault.ts";
import { atClose } from "../edge/timed-response.ts";

/**
 * A controller whose signal aborts when the client goes before its answer is complete, whether or not that is a
 * stream. It is what carries a cancel from the client's socket to the GPU.
 */
export function untilClientLeaves(response: ServerResponse): AbortController {
  const leaving = new AbortController();
  atClose(response, () => {
    if (response.writableFinished) return;
    leaving.abort(
      new Fault("client_closed", { message: "The client closed the connection before the answer was complete." }),
    );
  });
  return leaving;
}
