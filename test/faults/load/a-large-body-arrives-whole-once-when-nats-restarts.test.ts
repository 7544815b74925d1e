import { setTimeout as pass } from "node:timers/promises";
import { expect, test } from "vitest";
import { FakeOtherServer } from "../../harness/fake-other-server.ts";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import { TcpProxy } from "../../harness/tcp-proxy.ts";
import { until } from "../../harness/until.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const mb = 1_000_000;
const downMs = 300;
/** Where in the body the server dies, in bytes that have gone. */
const kills = sized({ fast: [10 * mb], whole: [1 * mb, 5 * mb, 10 * mb, 15 * mb, 19 * mb] });
const model = "other-model";
/** No two pieces of it are alike, so that none could stand in for another. */
const says = Array.from({ length: 2 * mb }, (_, index) => String(index).padStart(9)).join(" ");

test.skipIf(lentOnly("nats", "redis")).for(kills)(
  "a body of 20 MB that goes in parts while NATS dies %i bytes into it, and is back in 0.3 s, reaches the runtime whole, and once",
  { timeout: testTimeoutMs },
  async (killAtBytes) => {
    await using runtime = await FakeOtherServer.start({ models: [model] });
    await using nats = await startNatsServer();
    await using line = await TcpProxy.before(nats.url);
    // As on a line to somewhere else: on loopback the body would be there before anybody could be killed.
    line.latencyMs = 10;
    await using fleet = await BalancedFleet.start({
      nats,
      gateways: 1,
      machines: { attic: [model] },
      agentEnv: { TRUNKLINE_RUNTIME: "openai", TRUNKLINE_RUNTIME_URL: runtime.url },
      natsUrl: ({ kind }) => (kind === "gateway" ? `nats://127.0.0.1:${line.port}` : undefined),
    });
    const before = line.bytesPassed("there");
    const answer = fleet.endpoint.answer({ model, says });
    answer.catch(() => undefined);
    const midway = (): boolean => line.bytesPassed("there") - before >= killAtBytes;
    await until(midway, { what: `${killAtBytes} bytes of the body on their way`, timeoutMs: 10_000, intervalMs: 1 });
    await nats.kill();
    expect(line.bytesPassed("there") - before).toBeLessThan(says.length);
    await pass(downMs);
    await nats.restart();
    expect(await answer).toBe("Hello from here.");
    const texts = runtime.chats.map(({ body }) => JSON.stringify(body["messages"]));
    expect(texts.map(({ length }) => length)).toEqual([JSON.stringify([{ role: "user", content: says }]).length]);
    expect(texts[0]?.includes(says)).toBe(true);
  },
);
