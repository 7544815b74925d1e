import { z } from "zod";
import type { OwnedChild } from "../../harness/owned-child.ts";
import { until } from "../../harness/until.ts";

/** A process between client and runtime, whose CPU time and memory count. */
export interface PathProcess {
  /** `gateway`, `nats`, `agent`, `redis`, or the name of a peer. */
  readonly name: string;
  readonly pid: number;
}

/** One way from a client to the far end, with all of its processes ready for the first request. */
export interface RunningVariant extends AsyncDisposable {
  /** The port of loopback that clients ask. */
  readonly port: number;
  /** The path that the load is sent to; that of chats unless given. */
  readonly path?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly processes: readonly PathProcess[];
}

export interface StartOptions {
  readonly farEndPort: number;
  /** For configuration of this one start; removed afterwards. */
  readonly folder: string;
}

/** A way from client to runtime that the bench measures. */
export interface Variant {
  /** The name for `--only` and the tables. */
  readonly name: string;
  readonly title: string;
  /** Runs only when `--only` names it. */
  readonly onlyWhenNamed?: boolean;
  /** The scenarios that it takes part in; all of them unless given. */
  readonly scenarios?: readonly string[];
  /** Returns why it cannot run on this machine, or undefined. */
  missing(): Promise<string | undefined>;
  /** Starts fresh processes; resolves when a request through all of them has succeeded. */
  start(options: StartOptions): Promise<RunningVariant>;
}

/** Throws for a process in a container, whose CPU time cannot be read. */
export function pathProcess(name: string, { processId }: { readonly processId: number | undefined }): PathProcess {
  if (processId === undefined) throw new Error(`the process id of ${name} is unknown`);
  return { name, pid: processId };
}

/** Starts a variant of several parts. All parts end with it, or at once if one does not start. */
export async function runningParts(
  build: (parts: AsyncDisposableStack) => Promise<Omit<RunningVariant, symbol>>,
): Promise<RunningVariant> {
  const parts = new AsyncDisposableStack();
  try {
    const running = await build(parts);
    return { ...running, [Symbol.asyncDispose]: () => parts.disposeAsync() };
  } catch (error) {
    await parts.disposeAsync();
    throw error;
  }
}

/** The environment of a process that is not Trunkline: no proxy and no Node options of ours reach it. */
export function bareEnvironment(): Readonly<Record<string, string | undefined>> {
  return { PATH: process.env["PATH"], HOME: process.env["HOME"], NODE_ENV: "production" };
}

/** The model that a variant is asked for when it has just started. */
export const firstModel = "m-1-0";
const firstAnswerMs = 90_000;
const attemptMs = 5_000;
const completion = z.looseObject({ choices: z.array(z.looseObject({ message: z.looseObject({}) })).min(1) });

/** Waits until a whole and a streamed answer have come through. Fails at once when one of the processes has ended. */
export async function untilAnswers(
  { port, headers }: Pick<RunningVariant, "port" | "headers">,
  processes: readonly Pick<OwnedChild, "ended" | "stderr">[],
): Promise<void> {
  const ask = async (stream: boolean): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: firstModel, stream, messages: [{ role: "user", content: "Are you there?" }] }),
      signal: AbortSignal.timeout(attemptMs),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status}: ${text.slice(0, 500)}`);
    return text;
  };
  const look = async (): Promise<string> => {
    const gone = processes.find(({ ended }) => ended);
    if (gone !== undefined) return `a process ended: ${await gone.stderr()}`;
    completion.parse(JSON.parse(await ask(false)));
    const stream = await ask(true);
    if (!stream.includes("data: [DONE]")) throw new Error(`a stream without its end: ${stream.slice(-500)}`);
    return "answers";
  };
  const what = `a first answer on port ${port}`;
  const seen = await until(look, { what, timeoutMs: firstAnswerMs, intervalMs: 20 });
  if (seen !== "answers") throw new Error(`Nothing answers on port ${port}; ${seen}`);
}
