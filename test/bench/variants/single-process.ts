import { freePort } from "../../harness/free-port.ts";
import { OwnedChild } from "../../harness/owned-child.ts";
import { untilAnswers } from "./first-answer.ts";
import { pathProcess } from "./path-process.ts";
import { runningParts } from "./running-parts.ts";
import type { RunningVariant } from "./variant.ts";

interface Program {
  /** Of the variant and of its one process. */
  readonly name: string;
  /** What to run so that it listens on a port of loopback. */
  readonly command: (port: number) => Promise<{ readonly binary: string; readonly args: readonly string[] }>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Starts a variant that is one process between client and far end. */
export function startSingleProcess({ name, command, headers = {} }: Program): Promise<RunningVariant> {
  return runningParts(async (parts) => {
    const port = await freePort();
    const child = parts.use(await OwnedChild.start({ ...(await command(port)), environment: bareEnvironment() }));
    await untilAnswers({ port, headers }, () => lastWords(child));
    return { ports: [port], headers, processes: [pathProcess(name, child)] };
  });
}

/** Nothing of ours changes how they run, such as a proxy for what they ask or options for Node. */
export function bareEnvironment(): Readonly<Record<string, string | undefined>> {
  return { PATH: process.env["PATH"], NODE_ENV: "production" };
}

/** What a process said that has ended. */
export async function lastWords(child: OwnedChild): Promise<string | undefined> {
  return child.ended ? `exit ${await child.exit()}, ${await child.stderr()}` : undefined;
}
