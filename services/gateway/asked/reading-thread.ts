import { parentPort } from "node:worker_threads";
import { Fault } from "#shared/fault/fault.ts";
import type { ReadAnswer, ReadOrder } from "./read-aside.ts";
import { readAsked } from "./read-asked.ts";

/** A thread of its own that reads one large request after the other. */
parentPort?.on("message", ({ outer, bytes }: ReadOrder) => {
  const [answer, moved] = answerTo(outer, bytes);
  parentPort?.postMessage(answer, moved);
  // What was asked is written anew, and nobody else has these: memory that waits for the collector makes it come more often.
  if (bytes.buffer instanceof ArrayBuffer) bytes.buffer.transfer(0);
});

function answerTo(outer: ReadOrder["outer"], bytes: Uint8Array): [ReadAnswer, ArrayBuffer[]] {
  try {
    const asked = readAsked(outer, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    const { buffer } = asked.body;
    const isAllOfIt = buffer instanceof ArrayBuffer && buffer.byteLength === asked.body.byteLength;
    return [{ outcome: "read", asked }, isAllOfIt ? [buffer] : []];
  } catch (thrown) {
    const { code, message, param, internal } = Fault.from(thrown);
    return [{ outcome: "fault", code, details: { message, param, internal } }, []];
  }
}
