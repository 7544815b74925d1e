import { faultEntry, Fault } from "#shared/fault/fault.ts";
import { addReplyHeaders, TimedResponse, writeWhole } from "../http/timed-response.ts";
import { logFieldsOf, stateOf } from "../http/request-state.ts";
import { machineHeader, StreamWriter, CollectedAnswer } from "../jobs/write-answer.ts";
import type { Admitted } from "./admit-request.ts";
import type { InferenceMeans } from "./routes.ts";
import { rateLimitLines } from "./answer-headers.ts";

/**
 * Runs a request and sends its answer piece by piece. A failure before the first piece is thrown, and becomes an answer
 * with a status. A later failure is reported inside the stream.
 */
export async function answerStream(
  { reply, leaving, account, job, ends, told }: Admitted,
  { placer, timing, log }: InferenceMeans,
): Promise<void> {
  const response = reply.raw;
  const writer = new StreamWriter({
    response,
    ends,
    timing,
    headers: () => {
      const lines = rateLimitLines(reply.request);
      addReplyHeaders(lines, reply);
      return lines;
    },
    onAccept: (machine) => void reply.header(machineHeader, machine),
    onSlow: (fault) => leaving.abort(fault),
  });
  try {
    const listener = account.following(writer);
    await placer.run(Object.assign(job, { listener }));
  } catch (thrown) {
    const fault = told(Fault.from(thrown));
    account.endedIn(fault.code);
    stateOf(reply.request).reason = fault.reason;
    if (!writer.begun) throw fault;
    const fields = { ...logFieldsOf(reply.request), code: fault.code, internal: fault.reason };
    if (faultEntry(fault.code).status < 500) log.debug(fields, "stream ended by its client or its key");
    else log.warn(fields, "stream failed");
    reply.hijack();
    if (fault.code === "slow_client") response.destroy();
    else writer.fail(fault);
    return;
  }
  account.endedIn("ok");
  reply.hijack();
  writer.end();
}

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
  const lines = rateLimitLines(reply.request);
  lines.push("content-type", "application/json; charset=utf-8");
  writeWhole(reply, lines, collected.bytes());
}
