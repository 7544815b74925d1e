import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { OwnedChild } from "./owned-child.ts";
import { until } from "./until.ts";

/** Settings of one process, by their names. */
export type Settings = Readonly<Record<string, string>>;

/** One that has the length that a pepper must have. */
export const testPepper = "a pepper that is long enough to be one";

/** A Trunkline that tests can start. A single-file executable is its own Node, and has no `main`. */
export interface Program {
  readonly node: string;
  readonly main?: string;
}

const sources = resolve(import.meta.dirname, "../../services/cli/main.ts");
/** The sources on this Node, unless these two name a package and a Node, or an executable and an empty text. */
const { TESTED_NODE: node = process.execPath, TESTED_MAIN: main = sources } = process.env;
/** Below the time of a test, so that what the process said is shown when it hangs. */
const commandTimeoutMs = 12_000;
/** Node keeps what it made of the sources here: it halves the time that each of the many processes takes to start. */
const compileCache = join(tmpdir(), "trunkline-test-compile-cache");

/** Starts `trunkline <args>` as a real process. Nothing of Trunkline's that stands in our own environment reaches it. */
export function launchTrunkline(
  args: readonly string[],
  settings: Settings,
  program: Program = { node, main },
): Promise<OwnedChild> {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 26) {
    throw new Error(`Trunkline needs Node 26 and this is ${process.version}: run the tests by npm test or npx vitest`);
  }
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TRUNKLINE_"));
  const environment = { ...Object.fromEntries(inherited), NODE_COMPILE_CACHE: compileCache, ...settings };
  const script = program.main ? [program.main] : [];
  return OwnedChild.start({ binary: program.node, args: [...script, ...args], environment });
}

export interface CommandResult {
  readonly exitCode: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `trunkline <args>` to its end. */
export async function trunkline(args: readonly string[], settings: Settings = {}): Promise<CommandResult> {
  await using child = await launchTrunkline(args, settings);
  const what = `trunkline ${args.join(" ")} to end`;
  const exitCode = await until(async () => child.ended && String(await child.exit()), {
    what,
    timeoutMs: commandTimeoutMs,
  }).catch(async (error: unknown) => {
    throw new Error(`${String(error)}; it says: ${await child.stderr()}`);
  });
  const [stdout, stderr] = await Promise.all([child.stdout(), child.stderr()]);
  return { exitCode: /^\d+$/.test(exitCode) ? Number(exitCode) : exitCode, stdout, stderr };
}

const issuedKey = z.object({
  id: z.string(),
  key: z.string(),
  name: z.string(),
  scopes: z.array(z.string()),
  expires_at: z.iso.datetime(),
});
export type IssuedKey = z.infer<typeof issuedKey>;

/** Issues a key as an operator does. `store` are the settings that name the key store; `flags` come after its name. */
export async function issueKey(store: Settings, ...flags: readonly string[]): Promise<IssuedKey> {
  const { exitCode, stdout, stderr } = await trunkline(["keys", "issue", "--name", "test", ...flags, "--json"], store);
  if (exitCode !== 0) throw new Error(`keys issue ended with ${exitCode}: ${stderr}`);
  return issuedKey.parse(JSON.parse(stdout));
}
