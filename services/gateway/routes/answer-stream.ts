import { faultEntry } from "#shared/fault/fault-code.ts";
import { Fault } from "#shared/fault/fault.ts";
import { addDueHeaders } from "../edge/due-headers.ts";
import { tiesOf } from "../edge/request-facts.ts";
import { stateOf } from "../edge/request-state.ts";
import { machineHeader, StreamWriter } from "../dispatch/write-stream.ts";
import type { Admitted } from "./admit-request.ts";
import type { InferenceMeans } from "./inference-means.ts";
import { standingLines } from "./tell-standing.ts";

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
      const lines = standingLines(reply.request);
      addDueHeaders(lines, reply);
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
    const fields = { ...tiesOf(reply.request), code: fault.code, internal: fault.reason };
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
