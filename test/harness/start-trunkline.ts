import { z } from "zod";
import { Endpoint } from "./endpoint.ts";
import { testPepper, type Program, type Settings } from "./trunkline-command.ts";
import { TrunklineProcess } from "./trunkline-process.ts";

/** For every process: any free ports, and the demonstration unless a test says otherwise. */
export const anywhere = { TRUNKLINE_PORT: "0", TRUNKLINE_OPERATIONS_PORT: "0", TRUNKLINE_LOG_LEVEL: "info" };
export const demonstration = { TRUNKLINE_RUNTIME: "scripted" };

const readyLine = z.strictObject({
  base_url: z.url(),
  api_key: z.string(),
  runtime: z.string().nullable(),
  public_url: z.url().optional(),
});
const listening = z.looseObject({ baseUrl: z.url(), operationsUrl: z.url() });

export type UpProcess = TrunklineProcess & {
  /** With the key that it made for itself. */
  readonly endpoint: Endpoint;
  readonly runtime: string | null;
  readonly operationsUrl: string;
};

/** What the ready line of `trunkline up --json` tells, with the key that it made for itself. */
export function readyIn(line: string): Pick<UpProcess, "endpoint" | "runtime"> {
  const { base_url: baseUrl, api_key: key, runtime } = readyLine.parse(JSON.parse(line));
  return { endpoint: new Endpoint({ baseUrl, key }), runtime };
}

/** Starts `trunkline up --json` and comes back when it is ready. */
export async function startUp(env: Settings = {}, program?: Program): Promise<UpProcess> {
  const settings = { ...anywhere, ...demonstration, ...env };
  const up = await TrunklineProcess.start({ args: ["up", "--json"], settings, program });
  return orDispose(up, async () => {
    const [line] = await up.printed(/^.*\n/);
    const { operationsUrl } = listening.parse(await up.logged("gateway listens"));
    return Object.assign(up, { ...readyIn(line), operationsUrl });
  });
}

export type GatewayProcess = TrunklineProcess & { readonly baseUrl: string; readonly operationsUrl: string };

/** Starts `trunkline gateway` and comes back when it is ready. */
export async function startGateway(options: {
  readonly natsUrl: string;
  /** Without it, its store is SQLite in its state folder. */
  readonly redisUrl?: string;
  readonly pepper?: string;
  readonly env?: Settings;
}): Promise<GatewayProcess> {
  const { natsUrl, redisUrl, pepper = testPepper, env } = options;
  const stores = { ...(redisUrl && { TRUNKLINE_REDIS_URL: redisUrl }), TRUNKLINE_KEY_PEPPER: pepper };
  const settings = { ...anywhere, TRUNKLINE_NATS_URL: natsUrl, ...stores, ...env };
  const gateway = await TrunklineProcess.start({ args: ["gateway"], settings });
  return orDispose(gateway, async () => {
    await gateway.logged("gateway ready");
    const { baseUrl, operationsUrl } = listening.parse(await gateway.logged("gateway listens"));
    return Object.assign(gateway, { baseUrl, operationsUrl });
  });
}

export type AgentProcess = TrunklineProcess & { readonly machine: string };

/** Starts `trunkline agent` and comes back when it is ready, which it is without a runtime too. */
export async function startAgent(options: {
  readonly natsUrl: string;
  readonly machine: string;
  /** Which of the demonstration models it offers; all of them unless told. */
  readonly models?: readonly string[];
  readonly env?: Settings;
}): Promise<AgentProcess> {
  const { natsUrl, machine, models, env } = options;
  const named = { TRUNKLINE_NATS_URL: natsUrl, TRUNKLINE_MACHINE: machine };
  return launchAgent({ machine, models, args: ["agent"], env: { ...named, ...env } });
}

/** Starts `trunkline agent` that joins by this line, or is paired already as its state folder says, and is ready. */
export async function startPairedAgent(options: {
  readonly line?: string | undefined;
  readonly machine: string;
  readonly models?: readonly string[] | undefined;
  readonly env?: Settings | undefined;
}): Promise<AgentProcess> {
  const { line, machine, models, env } = options;
  const args = line === undefined ? ["agent"] : ["agent", "--join", line];
  return launchAgent({ machine, models, args, env });
}

async function launchAgent(options: {
  readonly machine: string;
  readonly models: readonly string[] | undefined;
  readonly args: readonly string[];
  readonly env: Settings | undefined;
}): Promise<AgentProcess> {
  const { machine, models, args, env } = options;
  const offered = models === undefined ? {} : { TRUNKLINE_SCRIPTED_MODELS: models.join(",") };
  const settings = { ...anywhere, ...demonstration, ...offered, ...env };
  const agent = await TrunklineProcess.start({ args, settings, title: `trunkline agent ${machine}` });
  return orDispose(agent, async () => {
    await agent.logged("agent ready");
    return Object.assign(agent, { machine });
  });
}

/** A process that does not come to be ready leaves nothing behind. */
async function orDispose<T>(started: TrunklineProcess, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await started[Symbol.asyncDispose]();
    throw error;
  }
}
