import type { StreamEnds } from "../dispatch/write-stream.ts";
import { faultBody } from "./fault-body.ts";

/** The ends of a stream of chunks: official clients take one that merely stops for a success, so that a failure is told. */
export const endsOfChunks: StreamEnds = {
  whole: Buffer.from("data: [DONE]\n\n"),
  failed: (fault) => Buffer.from(`data: ${JSON.stringify(faultBody(fault))}\n\n`),
};
