import type { FastifyReply } from "fastify";
import { collectAnswer } from "../dispatch/collect-answer.ts";
import { bearsInterim, interimResponses } from "../dispatch/interim-responses.ts";
import { machineHeader } from "../dispatch/write-stream.ts";
import { writeWhole } from "../edge/write-whole.ts";
import type { Admitted } from "./admit-request.ts";
import type { InferenceMeans } from "./inference-means.ts";

/** Runs a request and sends its answer in one piece, once it is known to be whole. */
export async function answerWhole(
  { reply, leaving, account, job }: Admitted,
  { placer, interimMs }: InferenceMeans,
): Promise<FastifyReply> {
  const collected = collectAnswer((fault) => leaving.abort(fault));
  const told = interimMs > 0 && bearsInterim(reply.request.raw) ? interimResponses(reply.raw, interimMs) : {};
  const onAccept = (machine: string): void => void reply.header(machineHeader, machine);
  const listener = account.following({ ...collected, ...told, onAccept });
  await placer.run(Object.assign(job, { listener, signal: leaving.signal }));
  account.endedIn("ok");
  writeWhole(reply, "application/json; charset=utf-8", collected.bytes());
  return reply;
}
