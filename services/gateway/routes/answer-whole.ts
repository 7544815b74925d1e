import type { FastifyReply } from "fastify";
import { collectAnswer } from "../dispatch/collect-answer.ts";
import type { JobPlacer } from "../dispatch/place-job.ts";
import type { Admitted } from "./admit-request.ts";

/** Runs a request and sends its answer in one piece, once it is known to be whole. */
export async function answerWhole(
  { reply, leaving, account, job }: Admitted,
  { shape, placer }: { readonly shape: string; readonly placer: JobPlacer },
): Promise<FastifyReply> {
  const collected = collectAnswer((fault) => leaving.abort(fault));
  const listener = account.following(collected);
  await placer.run(Object.assign(job, { shape, listener, signal: leaving.signal }));
  account.endedIn("ok");
  return reply.type("application/json; charset=utf-8").send(collected.bytes());
}
