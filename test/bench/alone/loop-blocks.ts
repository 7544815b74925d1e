import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { findServers } from "../../harness/find-servers.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import type { OwnedChild } from "../../harness/owned-child.ts";
import { startRedisServer } from "../../harness/redis-server.ts";
import { freePort } from "../../harness/free-port.ts";
import { issueKey, launchTrunkline, testPepper, type Settings } from "../../harness/trunkline-command.ts";
import { until } from "../../harness/until.ts";
import { ordinaryBody, worstBodies, type Body } from "./worst-bodies.ts";

/**
 * For how long one request holds the event loop of a gateway, and of the agent that runs it: the worst that can be
 * made, beside an ordinary one, against real processes. Run it with `npm run bench:blocks`.
 */
const rounds = 5;
const settleMs = 60;

const chat = (content: string): string =>
  JSON.stringify({ model: "scripted", max_tokens: 1, messages: [{ role: "user", content }] });
const large: readonly Body[] = [
  { name: "a chat of 1.2 MB", of: "chat", text: chat("x".repeat(1_200_000)) },
  { name: "a chat of 10 MB", of: "chat", text: chat("x".repeat(10_000_000)) },
  { name: "a chat of 33 MB", of: "chat", text: chat("x".repeat(33_000_000)) },
  {
    name: "a response that is answered at length",
    of: "responses",
    text: JSON.stringify({ model: "scripted", input: "/script tokens=43000" }),
  },
  {
    name: "the same, streamed",
    of: "responses",
    text: JSON.stringify({ model: "scripted", input: "/script tokens=43000", stream: true }),
  },
  { name: "a chat of 32 MB of escapes", of: "chat", text: chat('"'.repeat(16_000_000)) },
];
const paths = {
  chat: "chat/completions",
  responses: "responses",
  embeddings: "embeddings",
  completions: "completions",
} as const;

const { nats: foundNats, redis: foundRedis } = await findServers();
await using parts = new AsyncDisposableStack();
const nats = parts.use(await startNatsServer({ found: foundNats }));
const redis = parts.use(await startRedisServer({ found: foundRedis }));
const store: Settings = { TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper };
const { key } = await issueKey(store, "--scopes", "*");
const port = await freePort();
const sampler = pathToFileURL(join(import.meta.dirname, "loop-sampler.ts")).href;
const both: Settings = { TRUNKLINE_NATS_URL: nats.url, NODE_OPTIONS: `--import=${sampler}` };
const own = { ...both, ...store, TRUNKLINE_PORT: String(port), TRUNKLINE_OPERATIONS_PORT: "0" };
const gateway = parts.use(await launchTrunkline(["gateway"], own));
const agent = parts.use(
  await launchTrunkline(["agent"], { ...both, TRUNKLINE_RUNTIME: "scripted", TRUNKLINE_MACHINE: "a" }),
);
const ask = (path: string, init?: RequestInit): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}/v1/${path}`, {
    ...init,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
  });
const serves = async (): Promise<boolean> => {
  const response = await ask("models").catch(() => undefined);
  await response?.arrayBuffer();
  return response?.status === 200;
};
await until(serves, { what: "the gateway to serve", timeoutMs: 20_000 });

interface Held {
  readonly name: string;
  readonly status: number;
  readonly gateway: readonly number[];
  readonly agent: readonly number[];
}

/** The longest that a process stood still since it had written so much. */
async function stood(child: OwnedChild, since: number): Promise<number> {
  const said = (await child.stderr()).slice(since);
  return Math.max(0, ...[...said.matchAll(/loop stood (\d+)/g)].map(([, ms]) => Number(ms)));
}

async function hold({ name, of, text }: Body): Promise<Held> {
  const held = { gateway: [] as number[], agent: [] as number[] };
  let status = 0;
  for (let round = 0; round < rounds; round += 1) {
    const [before, beside] = [(await gateway.stderr()).length, (await agent.stderr()).length];
    const response = await ask(paths[of], { method: "POST", body: text });
    await response.arrayBuffer();
    status = response.status;
    await sleep(settleMs);
    held.gateway.push(await stood(gateway, before));
    held.agent.push(await stood(agent, beside));
  }
  return { name, status, ...held };
}

const median = (of: readonly number[]): number => of.toSorted((a, b) => a - b)[Math.floor(of.length / 2)] ?? Number.NaN;
const columns = (of: readonly number[]): string =>
  [median(of), Math.max(...of)].map((ms) => ms.toFixed(0).padStart(9)).join("");

process.stdout.write(`${"ms that the loop stood still".padEnd(48)}  gateway: median, most   agent: median, most\n`);
for (const body of [ordinaryBody, ...large, ...worstBodies]) {
  const held = await hold(body);
  process.stdout.write(`${held.name.padEnd(45)}${held.status} ${columns(held.gateway)}    ${columns(held.agent)}\n`);
}
