import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { exitCodes, StartFailure } from "./lifecycle.ts";

/** The environment of the process. Only the CLI's entry reads `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a list with commas: `a,b` or `a, b`. */
export const commaList = z.string().transform((text): readonly string[] => text.split(",").map((each) => each.trim()));

/**
 * Returns the variable of the environment that holds a setting: `natsUrl` comes from `TRUNKLINE_NATS_URL`, and
 * `otelServiceName` from OpenTelemetry's own `OTEL_SERVICE_NAME`.
 */
export function variableOf(setting: string): string {
  const prefix = setting.startsWith("otel") ? "" : "TRUNKLINE_";
  return prefix + setting.replace(/[A-Z]/g, "_$&").toUpperCase();
}

/**
 * Reads the settings of a schema from their variables (`variableOf`) and returns them frozen. It reports all problems at
 * once, each with the variable's name and its fix. An empty variable counts as unset. A message never repeats a value,
 * since it may be a secret.
 */
export function readConfig<Schema extends z.ZodObject>(
  schema: Schema,
  environment: Environment,
): Readonly<z.output<Schema>> {
  const given: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, field] of Object.entries<z.ZodType>(schema.shape)) {
    try {
      const variable = variableOf(name);
      const value = isSecret(field) ? readSecret(variable, environment) : environment[variable];
      if (value !== undefined && value !== "") given[name] = value;
    } catch (error) {
      if (!(error instanceof ConfigFailure)) throw error;
      problems.push(...error.problems);
    }
  }
  const parsed = schema.safeParse(given);
  for (const { path, message } of parsed.error?.issues ?? []) problems.push(`${variableOf(path.join("."))} ${message}`);
  if (parsed.success && problems.length === 0) return Object.freeze(parsed.data);
  throw new ConfigFailure(problems);
}

/** Marks a setting as a secret: `NAME` may then also come from the file `NAME_FILE` or from a systemd credential `NAME`. */
export function secret<Schema extends z.ZodType>(schema: Schema): Schema {
  return schema.meta({ secret: true });
}

export function isSecret(field: z.ZodType): boolean {
  return field.meta()?.["secret"] === true;
}

/** Reads a secret. Trims the text of a file, since its last line break is not part of the secret. */
function readSecret(name: string, environment: Environment): string | undefined {
  const { [name]: value, [`${name}_FILE`]: file, CREDENTIALS_DIRECTORY: credentials } = environment;
  const credential = credentials ? join(credentials, name) : "";
  const sources = [
    ...(value ? [name] : []),
    ...(file ? [`${name}_FILE`] : []),
    ...(credential !== "" && existsSync(credential) ? [`the systemd credential ${name}`] : []),
  ];
  if (sources.length > 1) throw new ConfigFailure([`${name} is set more than once: keep one of ${sources.join(", ")}`]);
  const [source] = sources;
  if (source === undefined || value) return value;
  try {
    const text = readFileSync(file || credential, "utf8").trim();
    if (text !== "") return text;
  } catch {
    throw new ConfigFailure([`${source} must be a file that this user may read`]);
  }
  throw new ConfigFailure([`${source} must be a file that is not empty`]);
}

/** All problems of a configuration. */
export class ConfigFailure extends StartFailure {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(exitCodes.config, `The configuration does not work: ${problems.join("; ")}.`);
    this.problems = problems;
  }
}

/** Reads two configurations of one process, and reports the problems of both together. */
export function readBoth<One, Other>(one: () => One, other: () => Other): [One, Other] {
  const problems = new Set<string>();
  const attempt = <Config>(read: () => Config): Config | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ConfigFailure)) throw error;
      for (const problem of error.problems) problems.add(problem);
      return undefined;
    }
  };
  const first = attempt(one);
  const second = attempt(other);
  if (first === undefined || second === undefined) throw new ConfigFailure([...problems]);
  return [first, second];
}

/** A whole number within bounds, written in decimal. */
export function wholeNumber(min: number, max: number): z.ZodType<number, string> {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message);
}

export const portNumber = wholeNumber(0, 65_535);

/** Defaults of `TRUNKLINE_PORT` and `TRUNKLINE_OPERATIONS_PORT`. No common model server listens on these ports. */
export const defaultPorts = { public: 8484, operations: 8081 } as const;

const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof logLevels)[number];

export const logLevel = z.enum(logLevels, `must be one of ${logLevels.join(", ")}`);

/** IP addresses and networks, separated by commas. */
export const networkList: z.ZodType<readonly string[], string> = commaList.refine(
  (each) => each.every(isNetwork),
  "must be IP addresses or networks such as 10.0.0.0/8, with commas between",
);

function isNetwork(text: string): boolean {
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** One URL or several separated by commas, each with one of the given schemes. */
export function urlList(schemes: readonly string[]): z.ZodType<string, string> {
  const fits = (text: string): boolean =>
    text.split(",").every((part) => URL.canParse(part.trim()) && schemes.includes(new URL(part.trim()).protocol));
  return z.string().refine(fits, `must be a URL that begins with ${schemes.map((s) => `${s}//`).join(" or ")}`);
}

/** A configurable wait: up to a day. */
export const waitMs = wholeNumber(1, 86_400_000);

/** A switch: `on` is true. */
export const onOff = z.enum(["on", "off"], "must be on or off").transform((text) => text === "on");

/** One NATS URL, or several separated by commas. */
export const natsUrl = urlList(["nats:", "tls:", "ws:", "wss:"]).refine(
  (urls) => new Set(urls.split(",").map((url) => url.trim().replace(/:.*/s, ""))).size === 1,
  "must begin with the same scheme in all its URLs",
);

/** Settings that every Trunkline process has, gateway or agent. */
export const processSettings = {
  natsUrl: secret(natsUrl.optional()),
  natsCreds: z.string().optional(),
  /** PEM files: the authority of the server's certificate, and this process's own certificate and its key. */
  natsCa: z.string().optional(),
  natsCert: z.string().optional(),
  natsKey: z.string().optional(),
  /** Allows a broker on another host without TLS or authentication, for a laboratory. */
  natsInsecure: z
    .enum(["true", "false"], "must be true or false")
    .transform((text) => text === "true")
    .optional(),
  logLevel: logLevel.default("info"),
  logFormat: z.enum(["json", "text"], "must be json or text").optional(),
  /** Time that a stopping process waits for work under way. */
  drainMs: wholeNumber(0, 3_600_000).default(30_000),
  /** Longest total time of a request, with its waiting. The smaller of the gateway's and the agent's value applies. */
  jobTotalMs: waitMs.optional(),
  /** Multiplies every time of the wire. For tests; all processes of a fleet need the same value. */
  timeScale: z
    .string()
    .regex(/^(0\.\d{1,3}|1)$/, "must be a number above 0 and up to 1, such as 0.2")
    .transform(Number)
    .refine((scale) => scale > 0, "must be above 0")
    .default(1),
} as const;

/** Returns how a process protects its connection to NATS. */
export function natsSecurityOf(given: z.output<z.ZodObject<typeof processSettings>>) {
  const { natsCa: caFile, natsCert: certificateFile, natsKey: keyFile, natsInsecure: insecure } = given;
  return { caFile, certificateFile, keyFile, insecure };
}
