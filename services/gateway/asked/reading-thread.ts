import { parentPort } from "node:worker_threads";
import { Fault } from "#shared/fault/fault.ts";
import type { ReadAnswer, ReadOrder } from "./read-aside.ts";
import { readAsked } from "./read-asked.ts";

/** The reading thread: reads one large request after the other. */
parentPort?.on("message", ({ outer, bytes }: ReadOrder) => {
  const [answer, moved] = answerTo(outer, bytes);
  parentPort?.postMessage(answer, moved);
  // The answer holds a new copy, and nothing else refers to these bytes. Memory that waits for the garbage collector
  // makes it run more often, so they are freed at once.
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
