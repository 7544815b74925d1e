import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { many, manyPieces } from "../harness/many-pieces.ts";
import type { TrunklineProcess } from "../harness/trunkline-process.ts";
import { spreadOf } from "./over-rounds.ts";
import { startSite } from "./variants/trunkline.ts";

/** How long one request holds the event loop of the gateway and of the agent, in ms of CPU: the median over rounds. */
export interface LoopHold {
  readonly name: string;
  readonly status: number;
  readonly gatewayMs: number;
  readonly agentMs: number;
}

type Body = readonly [name: string, path: (typeof paths)[keyof typeof paths], text: string];

const paths = {
  chat: "chat/completions",
  response: "responses",
  message: "messages",
  count: "messages/count_tokens",
  "response-count": "responses/input_tokens",
  completion: "completions",
  embeddings: "embeddings",
  rerank: "rerank",
  score: "score",
  "ollama-chat": "../api/chat",
} as const;

/** The sampler writes within one tick of 5 ms after a turn ends. */
const settleMs = 60;

/** Sends each of the worst requests `rounds` times to a site of its own. */
export async function measureLoopHolds(rounds: number, say: (line: string) => void): Promise<readonly LoopHold[]> {
  const sampler = pathToFileURL(join(import.meta.dirname, "loop-sampler.ts")).href;
  await using site = await startSite({ env: { NODE_OPTIONS: `--import=${sampler}` } });
  const { gateway, agent, headers, port } = site;
  const ask = async ([, path, body]: Body): Promise<number> => {
    const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
    const response = await fetch(`http://127.0.0.1:${port}/v1/${path}`, init);
    await response.arrayBuffer();
    return response.status;
  };
  const holds: LoopHold[] = [];
  for (const body of worstBodies()) {
    const [name] = body;
    say(`event loop: ${name}`);
    const held = { gateway: [] as number[], agent: [] as number[] };
    let status = 0;
    for (let round = 0; round < rounds; round += 1) {
      const [before, beside] = [(await gateway.stderr()).length, (await agent.stderr()).length];
      status = await ask(body);
      await sleep(settleMs);
      held.gateway.push(await longestHold(gateway, before));
      held.agent.push(await longestHold(agent, beside));
    }
    holds.push({ name, status, gatewayMs: spreadOf(held.gateway).median, agentMs: spreadOf(held.agent).median });
  }
  return holds;
}

/** The longest hold that a process reported after the first `since` characters of its standard error. */
async function longestHold(child: TrunklineProcess, since: number): Promise<number> {
  const written = (await child.stderr()).slice(since);
  return Math.max(0, ...[...written.matchAll(/loop held for (\d+)/g)].map(([, ms]) => Number(ms)));
}

/** Large requests, and requests with as many values, messages or keys as one may have, correct and wrong. */
function worstBodies(): readonly Body[] {
  const json = JSON.stringify;
  const model = "scripted";
  const chat = (name: string, fields: object): Body => [
    name,
    "chat/completions",
    json({ model, max_tokens: 1, ...fields }),
  ];
  const user = (name: string, content: unknown): Body => chat(name, { messages: [{ role: "user", content }] });
  const response = (name: string, fields: object): Body => [name, "responses", json({ model, ...fields })];
  const hello = { role: "user", content: "Hello" };
  const call = (id: string): object => ({ id, type: "function", function: { name: "f", arguments: "{}" } });
  const table = (prefix: string): object => Object.fromEntries(many(2_000, (place) => [`${prefix}${place}`, 1]));
  const tables = many(20, (place) => table(`t${place}_`));
  const messages = 10_000;
  return [
    chat("a chat of 5,000 messages, half of them calls", {
      messages: many(2_500, (place) => [
        { role: "assistant", content: null, tool_calls: [call(`c${place}`)] },
        { role: "tool", tool_call_id: `c${place}`, content: "12 °C" },
      ]).flat(),
    }),
    user("a chat of 1.2 MB", "x".repeat(1_200_000)),
    user("a chat of 10 MB", "x".repeat(10_000_000)),
    user("a chat of 33 MB", "x".repeat(33_000_000)),
    user("a chat of 32 MB of escapes", '"'.repeat(16_000_000)),
    response("a response that is answered at length", { input: "/script tokens=43000" }),
    response("a streamed response that is answered at length", { input: "/script tokens=43000", stream: true }),
    response("a response to 5,000 calls", {
      input: many(messages / 4, (place) => [
        { type: "function_call", call_id: `c${place}`, name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: `c${place}`, output: "12 °C" },
      ]).flat(),
    }),
    chat("10,000 messages with unknown fields", { messages: many(messages, () => ({ ...hello, x: 1 })) }),
    chat("10,000 messages of a wrong role", { messages: many(messages, () => ({ role: "robot" })) }),
    chat("messages with thousands of unknown fields", { messages: tables.map((fields) => ({ ...hello, ...fields })) }),
    user(
      "16,000 parts of text",
      many(16_000, () => ({ type: "text", text: "a" })),
    ),
    user(
      "49,000 parts that are numbers",
      many(49_000, () => 1),
    ),
    chat("tools with schemas of thousands of keys", {
      messages: [hello],
      tools: tables.map((parameters) => ({ type: "function", function: { name: "f", parameters } })),
    }),
    chat("20 MB in place of a function", {
      messages: [hello],
      tools: [{ type: "function", function: "x".repeat(2e7) }],
    }),
    chat("20 MB of quotes and a wrong field", {
      messages: [{ ...hello, content: '"'.repeat(1e7) }],
      temperature: "hot",
    }),
    ["2,048 texts to embed, the last wrong", "embeddings", json({ model, input: [...many(2_047, () => "a"), {}] })],
    ["1 MB of opening brackets", "chat/completions", "[".repeat(1_000_000)],
    ...manyPieces.map(({ name, outer, most, fields }): Body => [
      `${most.toLocaleString("en")} ${name}`,
      paths[outer],
      json({ model, ...fields(most) }),
    ]),
  ];
}
