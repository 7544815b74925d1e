import { isIP } from "node:net";
import { z } from "zod";
import { logLevels } from "./log.ts";
import { exitCodes, StartFailure } from "./start-failure.ts";

/** The environment as it was handed to the process. Only the CLI's entry reads `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads settings by their names in the environment: all problems are told at once, each with its name and its fix,
 * and the answer is frozen. An empty variable counts as one that is not set. A value is never repeated in a message,
 * since it may be a secret.
 */
export function readConfig<Schema extends z.ZodObject>(
  schema: Schema,
  environment: Environment,
): Readonly<z.output<Schema>> {
  const given = Object.fromEntries(
    Object.keys(schema.shape)
      .map((name) => [name, environment[name]] as const)
      .filter(([, value]) => value !== undefined && value !== ""),
  );
  const parsed = schema.safeParse(given);
  if (parsed.success) return Object.freeze(parsed.data);
  throw new ConfigFailure(parsed.error.issues.map((issue) => `${issue.path.join(".")} ${issue.message}`));
}

/** All that is wrong with a configuration. */
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

export const logLevel = z.enum(logLevels, `must be one of ${logLevels.join(", ")}`);

/** IP addresses and networks, with commas between. */
export const networkList: z.ZodType<readonly string[], string> = z
  .string()
  .transform((text) => text.split(",").map((each) => each.trim()))
  .refine((each) => each.every(isNetwork), "must be IP addresses or networks such as 10.0.0.0/8, with commas between");

function isNetwork(text: string): boolean {
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** One URL, or several with commas between, whose scheme is one of those named. */
export function urlList(schemes: readonly string[]): z.ZodType<string, string> {
  const fits = (text: string): boolean =>
    text.split(",").every((part) => URL.canParse(part.trim()) && schemes.includes(new URL(part.trim()).protocol));
  return z.string().refine(fits, `must be a URL that begins with ${schemes.map((s) => `${s}//`).join(" or ")}`);
}
