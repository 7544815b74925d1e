import { Fault } from "#shared/fault/fault.ts";
import { catalogue, type Catalogue } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Target } from "../dispatch/open-job.ts";
import type { OpenJobs } from "../dispatch/open-jobs.ts";

/** Asks one boot of a machine for its current catalogue, and waits at most `withinMs`. */
export async function askCatalogue(options: {
  readonly jobs: OpenJobs;
  readonly target: Target;
  readonly withinMs: number;
  readonly clock: Clock;
}): Promise<Catalogue> {
  const { jobs, target, withinMs, clock } = options;
  const late = new AbortController();
  const timer = clock.after(withinMs, () => late.abort(unanswered()));
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  const gather = (piece: Uint8Array): void => {
    pieces.push(piece);
    bytes += piece.byteLength;
    if (bytes > limits.catalogueBytesMax) late.abort(tooLarge());
  };
  try {
    const outcome = await jobs.run({
      target,
      head: { id: newToken(), kind: "models", shape: "models", remainingMs: Math.ceil(withinMs) },
      body: new Uint8Array(),
      acceptWithinMs: withinMs,
      listener: { onData: gather },
      signal: late.signal,
    });
    if (outcome.outcome !== "end") throw outcome.fault;
    const told = decodeJson(catalogue, Buffer.concat(pieces));
    if (told === undefined) {
      throw new Fault("upstream_error", { message: "The machine's list of models could not be understood." });
    }
    return told;
  } finally {
    timer.cancel();
  }
}

function tooLarge(): Fault {
  return new Fault("upstream_error", {
    message: `A machine's list of models is larger than ${limits.catalogueBytesMax} bytes (catalogueBytesMax).`,
  });
}

function unanswered(): Fault {
  return new Fault("agent_offline", { message: "The GPU machine did not answer in time." });
}
