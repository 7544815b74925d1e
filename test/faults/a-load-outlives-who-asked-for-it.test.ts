import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { SlowOllama } from "../harness/slow-ollama.ts";
import { type Fleet, startFleet } from "../harness/start-fleet.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";
import { lane } from "./lane.ts";

const model = "llama3:8b";
const onlyAttics = "qwen3:8b";
const hello = { model, says: "Hello!" };
const answer = "Hello from Ollama.";

describe.skipIf(lentOnly("nats", "redis"))("the load of a model", () => {
  let parts: AsyncDisposableStack;
  let ollamas: ReadonlyMap<string, SlowOllama>;
  let fleet: Fleet;

  beforeEach(async () => {
    parts = new AsyncDisposableStack();
    ollamas = new Map([
      ["attic", parts.use(await SlowOllama.start([model, onlyAttics]))],
      ["cellar", parts.use(await SlowOllama.start([model]))],
    ]);
    const machines = Object.fromEntries(
      [...ollamas].map(([name, { fake }]) => {
        const runtime = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: fake.url };
        return [name, { env: { ...runtime, TRUNKLINE_MANAGE: "place,pull" } }];
      }),
    );
    fleet = parts.use(await startFleet({ gateways: 2, machines, env: { TRUNKLINE_TIME_SCALE: String(lane.scale) } }));
    for (const { operationsUrl } of fleet.gateways) {
      const ready = async (): Promise<boolean> =>
        (await MetricsText.scrape(operationsUrl)).value("trunkline_machines", { state: "ready" }) === 2;
      await until(ready, { what: "both machines to be known" });
    }
  });
  afterEach(() => parts.disposeAsync());

  /** Waits until one machine loads the model, and returns it and the other one. */
  async function loading(): Promise<readonly [string, string]> {
    await until(() => [...ollamas.values()].some(({ begun }) => begun > 0), { what: "a load to begin" });
    return ollamas.get("attic")?.begun === 0 ? ["cellar", "attic"] : ["attic", "cellar"];
  }
  const at = (machine: string): SlowOllama => {
    const ollama = ollamas.get(machine);
    if (ollama === undefined) throw new Error(`there is no ${machine}`);
    return ollama;
  };
  const begun = (): number => [...ollamas.values()].reduce((sum, each) => sum + each.begun, 0);
  const requestsAt = async (machine: string): Promise<number> => {
    const url = fleet.gateways.at(-1)?.operationsUrl ?? "";
    const { families } = await MetricsText.scrape(url);
    const samples = ["running", "queued"].flatMap((name) => families.get(`trunkline_machine_${name}`)?.samples ?? []);
    return samples.filter(({ labels }) => labels["machine"] === machine).reduce((sum, { value }) => sum + value, 0);
  };
  const untilRequestsAt = (machine: string, count: number): Promise<unknown> =>
    until(async () => (await requestsAt(machine)) === count, { what: `${count} requests at ${machine}` });

  test("the load of a model is joined by a request at another gateway, and goes on when its client and its gateway are gone", async () => {
    const leaving = new AbortController();
    const asked = { ...hello, model: onlyAttics };
    const first = fleet.endpoints[0]?.chat(asked, leaving.signal).catch(() => "left");
    await untilRequestsAt("attic", 1);
    const second = fleet.endpoints[1]?.stream(asked);
    await untilRequestsAt("attic", 2);
    leaving.abort();
    expect(await first).toBe("left");
    await fleet.gateways[0]?.kill();
    await untilRequestsAt("attic", 1);
    at("attic").end();
    const stream = await second;
    expect([await stream?.over, stream?.text]).toEqual(["closed", answer]);
    expect(begun()).toBe(1);
  });

  test("the load of a model is told to whoever waits for it as it goes, and afterwards with the request and in the metrics", async () => {
    const waited = await fleet.endpoint.stream(hello);
    const machine = waited.response.headers.get("x-trunkline-machine") ?? "";
    const told = new RegExp(`^: loading ${model} on ${machine}, \\d+ %, about \\d+ s$`);
    await until(() => waited.comments.some((comment) => told.test(comment)), { what: "the progress of the load" });
    at(machine).end();
    await waited.over;
    expect(waited.text).toBe(answer);
    const id = waited.response.headers.get("x-request-id") ?? "";
    const isTold = async () => {
      const { exitCode, out } = await trunklineHere(["requests", "show", id], fleet.keyStore);
      return exitCode === 0 && out;
    };
    expect(await until(isTold, { what: "the record of the request" })).toMatch(
      new RegExp(`${machine} took it; it waited [\\d.]+ s for its model to load`),
    );
    const counted = async (): Promise<boolean> => {
      const metrics = await MetricsText.scrape(fleet.gateway.operationsUrl);
      const loads = metrics.samples("trunkline_machine_loads").filter(({ value }) => value === 1);
      return loads.length === 1 && loads[0]?.labels["machine"] === machine;
    };
    await until(counted, { what: "the load to be counted" });
  });

  test.each(["its agent", "its runtime"])(
    "the load of a model is begun on another machine when %s is killed",
    async (what) => {
      const waiting = fleet.endpoint.chat(hello);
      const [machine, other] = await loading();
      await untilRequestsAt(machine, 1);
      await (what === "its agent" ? fleet.agent(machine).kill() : at(machine).fake.stop());
      await until(() => at(other).begun === 1, { what: `${other} to load it`, timeoutMs: 15_000 });
      at(other).end();
      const response = await waiting;
      expect([response.status, response.headers.get("x-trunkline-machine")]).toEqual([200, other]);
    },
  );

  test("the load of a model that runs out of memory is begun on one other machine, and then its cause is told, without a further try", async () => {
    const waiting = fleet.endpoint.chat(hello);
    const [machine, other] = await loading();
    const cause = "model requires more system memory (9.1 GiB) than is available (2.0 GiB)";
    at(machine).end(cause);
    await until(() => at(other).begun === 1, { what: `${other} to try it` });
    at(other).end(cause);
    const { status, code, message } = await refusalOf(waiting);
    expect([status, code]).toEqual([502, "upstream_error"]);
    expect(message).toMatch(/could not be loaded on its machine: .*memory/);
    const [before, again] = [begun(), await fleet.endpoints[1]?.chat(hello)];
    expect([again?.status, begun()]).toEqual([502, before]);
    const line = await fleet.agent(machine).logged("a model could not be loaded");
    expect(line["cause"]).toContain("out of memory");
  });

  test("the load of a model goes on while Redis is away, and its request is answered", async () => {
    const waiting = fleet.endpoint.chat(hello);
    const [machine] = await loading();
    await untilRequestsAt(machine, 1);
    await fleet.redis.kill();
    at(machine).end();
    expect((await waiting).status).toBe(200);
    await fleet.redis.restart();
  });
});
