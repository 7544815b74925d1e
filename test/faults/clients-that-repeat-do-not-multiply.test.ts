import OpenAI, { APIError } from "openai";
import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { startRuntime } from "./runtime-of-mishaps.ts";
import { onlyInWholeLane } from "./lane.ts";

const requests = 120;
/** So many ask at once, each of them one after the other. */
const clients = 10;
/** What failover may add, and what a fleet may use beside that: once, and each second. */
const dispatchesPerRequestMax = 1.1;
const reserve = 20;
const refillMs = 1_000;

test.skipIf(lentOnly("nats", "redis") || onlyInWholeLane("clients that repeat"))(
  "while every runtime fails and every client repeats, machines get at most 1.1 jobs for each request that was admitted",
  { timeout: 60_000 },
  async () => {
    await using attic = await startRuntime({ mishap: "500" });
    await using cellar = await startRuntime({ mishap: "500" });
    const fronting = (url: string) => ({ env: { TRUNKLINE_RUNTIME: "vllm", TRUNKLINE_RUNTIME_URL: url } });
    await using fleet = await startFleet({
      machines: { attic: fronting(attic.url), cellar: fronting(cellar.url) },
    });
    const { endpoint } = fleet;
    await endpoint.untilListed("scripted");
    const client = new OpenAI({ baseURL: endpoint.baseUrl, apiKey: endpoint.key, maxRetries: 2 });
    const begunMs = performance.now();
    const ask = async (index: number): Promise<unknown> => {
      const messages = [{ role: "user" as const, content: `/script tokens=1 nonce=n${index}` }];
      return client.chat.completions.create({ model: "scripted", messages }).then(
        () => "answered",
        (error: unknown) => (error instanceof APIError ? error.status : String(error)),
      );
    };
    const inTurn = async (place: number): Promise<unknown[]> => {
      const all: unknown[] = [];
      for (let index = place; index < requests; index += clients) all.push(await ask(index));
      return all;
    };
    const asked = Array.from({ length: clients }, (_, place) => inTurn(place));
    const told = new Set((await Promise.all(asked)).flat());
    const refilled = (performance.now() - begunMs) / refillMs;
    for (const status of told) expect([502, 503]).toContain(status);
    const lines = await fleet.gateway.logLines();
    const admitted = lines.filter(({ msg, model }) => msg === "request" && model !== undefined).length;
    expect(admitted).toBeGreaterThan(requests);
    const dispatched = attic.chats.length + cellar.chats.length;
    expect(dispatched).toBeLessThanOrEqual(admitted * dispatchesPerRequestMax + reserve + refilled);
  },
);
