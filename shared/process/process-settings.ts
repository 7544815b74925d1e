import { z } from "zod";
import { logLevel, urlList, wholeNumber } from "./config.ts";

/** A wait that an operator may choose: up to a day. */
export const waitMs = wholeNumber(1, 86_400_000);

/** The settings that every process of Trunkline has, gateway or agent, by their names in the environment. */
export const processSettings = {
  TRUNKLINE_NATS_URL: urlList(["nats:", "tls:", "ws:", "wss:"]).optional(),
  TRUNKLINE_NATS_CREDS: z.string().optional(),
  TRUNKLINE_LOG_LEVEL: logLevel.default("info"),
  /** For how long a process that is told to stop waits for what is under way. */
  TRUNKLINE_DRAIN_MS: wholeNumber(0, 3_600_000).default(30_000),
  /** The longest that a request may take in all, its waiting included; the least of gateway's and agent's counts. */
  TRUNKLINE_JOB_TOTAL_MS: waitMs.optional(),
  /** Shrinks every time of the wire; for tests, and the same in all processes of a fleet. */
  TRUNKLINE_TIME_SCALE: z
    .string()
    .regex(/^(0\.\d{1,3}|1)$/, "must be a number above 0 and up to 1, such as 0.2")
    .transform(Number)
    .refine((scale) => scale > 0, "must be above 0")
    .default(1),
} as const;

/** The same by the words of the code. */
export function processConfig(given: z.output<z.ZodObject<typeof processSettings>>) {
  return {
    natsUrl: given.TRUNKLINE_NATS_URL,
    natsCredentialsFile: given.TRUNKLINE_NATS_CREDS,
    logLevel: given.TRUNKLINE_LOG_LEVEL,
    drainMs: given.TRUNKLINE_DRAIN_MS,
    timeScale: given.TRUNKLINE_TIME_SCALE,
    jobTotalMs: given.TRUNKLINE_JOB_TOTAL_MS,
  };
}
