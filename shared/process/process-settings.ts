import { z } from "zod";
import { logLevel, secret, urlList, wholeNumber } from "./config.ts";

/** A configurable wait: up to a day. */
export const waitMs = wholeNumber(1, 86_400_000);

/** One NATS URL, or several separated by commas. */
export const natsUrl = urlList(["nats:", "tls:", "ws:", "wss:"]).refine(
  hasOneScheme,
  "must begin with the same scheme in all its URLs",
);

/** Settings that every Trunkline process has, gateway or agent, by their names in the environment. */
export const processSettings = {
  TRUNKLINE_NATS_URL: secret(natsUrl.optional()),
  TRUNKLINE_NATS_CREDS: z.string().optional(),
  /** PEM files: the authority of the server's certificate, and this process's own certificate and its key. */
  TRUNKLINE_NATS_CA: z.string().optional(),
  TRUNKLINE_NATS_CERT: z.string().optional(),
  TRUNKLINE_NATS_KEY: z.string().optional(),
  /** Allows a broker on another host without TLS or authentication, for a laboratory. */
  TRUNKLINE_NATS_INSECURE: z
    .enum(["true", "false"], "must be true or false")
    .transform((text) => text === "true")
    .optional(),
  TRUNKLINE_LOG_LEVEL: logLevel.default("info"),
  /** Time that a stopping process waits for work under way. */
  TRUNKLINE_DRAIN_MS: wholeNumber(0, 3_600_000).default(30_000),
  /** Longest total time of a request, with its waiting. The smaller of the gateway's and the agent's value applies. */
  TRUNKLINE_JOB_TOTAL_MS: waitMs.optional(),
  /** Multiplies every time of the wire. For tests; all processes of a fleet need the same value. */
  TRUNKLINE_TIME_SCALE: z
    .string()
    .regex(/^(0\.\d{1,3}|1)$/, "must be a number above 0 and up to 1, such as 0.2")
    .transform(Number)
    .refine((scale) => scale > 0, "must be above 0")
    .default(1),
} as const;

/** Returns the settings by their names in the code. */
export function processConfig(given: z.output<z.ZodObject<typeof processSettings>>) {
  return {
    natsUrl: given.TRUNKLINE_NATS_URL,
    natsCredentialsFile: given.TRUNKLINE_NATS_CREDS,
    natsSecurity: {
      caFile: given.TRUNKLINE_NATS_CA,
      certificateFile: given.TRUNKLINE_NATS_CERT,
      keyFile: given.TRUNKLINE_NATS_KEY,
      insecure: given.TRUNKLINE_NATS_INSECURE,
    },
    logLevel: given.TRUNKLINE_LOG_LEVEL,
    drainMs: given.TRUNKLINE_DRAIN_MS,
    timeScale: given.TRUNKLINE_TIME_SCALE,
    jobTotalMs: given.TRUNKLINE_JOB_TOTAL_MS,
  };
}

function hasOneScheme(urls: string): boolean {
  return new Set(urls.split(",").map((url) => url.trim().replace(/:.*/s, ""))).size === 1;
}
