import { z } from "zod";
import { epoch } from "./epoch.ts";
import { limits } from "./limits.ts";
import { tokenText } from "./token.ts";

const token = z.string().regex(tokenText);
const offset = z.int().nonnegative();

/**
 * What a gateway says to an agent about jobs that it gave it. A control travels on the same connection as the job, so
 * that it cannot overtake it, and carries a reply subject, so that the broker answers 503 when the agent is gone.
 * All but `lease` and `fence` are safe to repeat and to lose.
 */
export const control = z.discriminatedUnion("kind", [
  /** Stop; nobody wants the answer any more. */
  z.object({ kind: z.literal("cancel"), job: token, reason: z.enum(["client_closed", "slow_client", "gave_up"]) }),
  /** Send the frames from this number on to the reply subject of this message, which owns the job from now on. */
  z.object({ kind: z.literal("attach"), job: token, from: z.int().min(1), keyId: z.string(), credit: offset }),
  /** The client has taken `taken` bytes, and the agent may send up to `limit`, both counted from the start. */
  z.object({ kind: z.literal("credit"), job: token, taken: offset, limit: offset }),
  /** Is the job still there? Answered by a beat at once. */
  z.object({ kind: z.literal("probe"), job: token }),
  /**
   * The gateway lives and waits for its jobs. Of those that came on, it tells how many bytes their clients have taken, which
   * gives as much credit again; a beat that shows that credit says that it was understood.
   */
  z.object({
    kind: z.literal("lease"),
    gateway: token,
    taken: z
      .array(z.tuple([token, offset]))
      .max(limits.jobsPerAgentMax)
      .optional(),
  }),
  /** A newer boot of this machine exists; this one is to stop. */
  z.object({ kind: z.literal("fence"), epoch }),
  /** The terminal frames of these jobs have arrived. */
  z.object({ kind: z.literal("finish"), jobs: z.array(token).min(1).max(1_000) }),
]);
export type Control = z.infer<typeof control>;
