import { z } from "zod";
import { epoch, tokenText } from "./identifiers.ts";
import { limits } from "./limits.ts";

const token = z.string().regex(tokenText);
const offset = z.int().nonnegative();

/**
 * A gateway's message to an agent about the jobs that it sent. A control travels on the same connection as the job, so
 * it cannot overtake the job. It carries a reply subject, so that the broker answers 503 when the agent is gone. All
 * kinds except `lease` and `fence` may be repeated or lost without harm.
 */
export const control = z.discriminatedUnion("kind", [
  /** Stop the job; its client no longer wants the answer. */
  z.object({ kind: z.literal("cancel"), job: token, reason: z.enum(["client_closed", "slow_client", "gave_up"]) }),
  /** Send the frames from this number on to the reply subject of this message, which owns the job from now on. */
  z.object({ kind: z.literal("attach"), job: token, from: z.int().min(1), keyId: z.string(), credit: offset }),
  /** The client has read `taken` bytes, and the agent may send up to `limit`, both counted from the start. */
  z.object({ kind: z.literal("credit"), job: token, taken: offset, limit: offset }),
  /** Asks whether the agent still has the job. The agent answers with a beat at once. */
  z.object({ kind: z.literal("probe"), job: token }),
  /**
   * The gateway lives and waits for its jobs. `taken` lists the jobs whose clients read on, with the bytes read. That
   * extends the credit by as much. A beat with the new credit limit shows that the agent understood it.
   */
  z.object({
    kind: z.literal("lease"),
    gateway: token,
    taken: z
      .array(z.tuple([token, offset]))
      .max(limits.jobsPerAgentMax)
      .optional(),
  }),
  /** A newer boot of this machine exists; the receiving agent must stop. */
  z.object({ kind: z.literal("fence"), epoch }),
  /** The gateway has received the terminal frames of these jobs. */
  z.object({ kind: z.literal("finish"), jobs: z.array(token).min(1).max(1_000) }),
]);
export type Control = z.infer<typeof control>;
