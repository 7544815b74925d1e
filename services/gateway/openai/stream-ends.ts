import type { StreamEnds } from "../dispatch/write-stream.ts";
import { faultBody } from "./fault-body.ts";

/**
 * The last bytes of a stream of chunks. Official clients take a stream that merely stops for a success, so a failure is
 * sent as an error event.
 */
export const endsOfChunks: StreamEnds = {
  whole: Buffer.from("data: [DONE]\n\n"),
  failed: (fault) => Buffer.from(`data: ${JSON.stringify(faultBody(fault))}\n\n`),
};
