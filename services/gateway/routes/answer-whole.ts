import { Fault } from "#shared/fault/fault.ts";
import { CollectedAnswer } from "../dispatch/collect-answer.ts";
import { machineHeader } from "../dispatch/write-stream.ts";
import { TimedResponse } from "../edge/timed-response.ts";
import { writeWhole } from "../edge/write-whole.ts";
import type { Admitted } from "./admit-request.ts";
import type { InferenceMeans } from "./inference-means.ts";
import { standingLines } from "./tell-standing.ts";

/** Runs a request and sends its answer in one piece, once the answer is complete. */
export async function answerWhole(
  { reply, leaving, account, job, told }: Admitted,
  { placer }: InferenceMeans,
): Promise<void> {
  const collected = new CollectedAnswer({
    onTooLarge: (fault) => leaving.abort(fault),
    onAccept: (machine) => void reply.header(machineHeader, machine),
    onGrow: (bytes) => {
      if (reply.raw instanceof TimedResponse) reply.raw.keptBytes = bytes;
    },
  });
  try {
    await placer.run(Object.assign(job, { listener: account.following(collected) }));
  } catch (thrown) {
    throw told(Fault.from(thrown));
  }
  account.endedIn("ok");
  const lines = standingLines(reply.request);
  lines.push("content-type", "application/json; charset=utf-8");
  writeWhole(reply, lines, collected.bytes());
}
