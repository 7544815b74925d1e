import { afterAll, beforeAll, expect, test } from "vitest";
import { MetricsText } from "../harness/metrics-text.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import type { LogLine, TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

let fleet: Fleet;
beforeAll(async () => {
  const machine = { models: ["scripted"], env: { TRUNKLINE_LOG_LEVEL: "debug" } };
  fleet = await startFleet({ machines: { attic: machine } });
});
afterAll(() => fleet[Symbol.asyncDispose]());

const prompt = "a canary sang to the prompt";

/** The first line of a process's log like this, as soon as it is there. */
function lineOf(of: TrunklineProcess, like: (line: LogLine) => boolean): Promise<LogLine> {
  return until(async () => (await of.logLines()).find(like), { what: `the line in the log of ${of.title}` });
}

/** The gateway's line of a request, and the machine's of its job. */
async function linesOf(response: Response): Promise<{ atGateway: LogLine; onMachine: LogLine }> {
  const id = response.headers.get("x-request-id");
  const [gateway] = fleet.gateways;
  if (gateway === undefined) throw new Error("this fleet has no gateway");
  const atGateway = await lineOf(gateway, ({ msg, request }) => msg === "request" && request === id);
  const onMachine = await lineOf(fleet.agent("attic"), ({ job }) => job === atGateway["job"]);
  return { atGateway, onMachine };
}

const keyId = (): string => fleet.endpoint.key.split("_")[1] ?? "";

test("the logs of gateway and machine tell of one request with the same job, key and model", async () => {
  const says = `/script tokens=5 delay_ms=5\n${prompt}`;
  const stream = await fleet.endpoint.stream({ model: "scripted", says });
  await stream.over;
  const { atGateway, onMachine } = await linesOf(stream.response);
  expect(atGateway).toMatchObject({
    key: keyId(),
    model: "scripted",
    job: expect.stringMatching(/^\w{22}$/),
    machine: "attic",
    status: 200,
    firstTokenMs: expect.any(Number),
    completionTokens: 5,
    outcome: "ok",
  });
  expect(atGateway).not.toHaveProperty("earlierJobs");
  expect(atGateway).not.toHaveProperty("failovers");
  const gateway = expect.stringMatching(/^\w{22}$/);
  expect(onMachine).toMatchObject({
    msg: "job done",
    job: atGateway["job"],
    key: keyId(),
    model: "scripted",
    gateway,
  });
});

test("the logs of gateway and machine tell of one that failed in a stream, each with its own word", async () => {
  const says = `/script tokens=5 delay_ms=5 fail_at=3\n${prompt}`;
  const stream = await fleet.endpoint.stream({ model: "scripted", says });
  await stream.over;
  const { atGateway, onMachine } = await linesOf(stream.response);
  const { job, request } = atGateway;
  expect(atGateway).toMatchObject({ status: 200, outcome: "upstream_error", completionTokens: 3, machine: "attic" });
  expect(onMachine).toMatchObject({ msg: "job failed", code: "upstream_error", key: keyId(), model: "scripted" });
  const [gateway] = fleet.gateways;
  const failed = (await gateway?.logLines())?.find((line) => line.msg === "stream failed");
  expect(failed).toMatchObject({ request, job, key: keyId(), model: "scripted", machine: "attic" });
});

test("the logs of gateway and machine tell of a client that left, and of a request that no machine was asked for", async () => {
  const leaving = new AbortController();
  const fields = { model: "scripted", says: "/script tokens=1000 delay_ms=20" };
  const stream = await fleet.endpoint.stream(fields, leaving.signal);
  await until(() => stream.text !== "", { what: "the first token" });
  leaving.abort();
  const { atGateway, onMachine } = await linesOf(stream.response);
  expect(atGateway).toMatchObject({ outcome: "client_closed", machine: "attic", key: keyId() });
  expect(onMachine).toMatchObject({ msg: "job cancelled", job: atGateway["job"] });
  const absent = await fleet.endpoint.chat({ model: "absent", says: prompt });
  const id = absent.headers.get("x-request-id");
  const [gateway] = fleet.gateways;
  if (gateway === undefined) throw new Error("this fleet has no gateway");
  const line = await lineOf(gateway, ({ msg, request }) => msg === "request" && request === id);
  expect(line).toMatchObject({ outcome: "model_not_found", status: 404, key: keyId(), model: "absent" });
  expect(line).not.toHaveProperty("job");
});

test("the logs of gateway and machine hold nothing of what was said, and no key", async () => {
  for (const process of [...fleet.gateways, fleet.agent("attic")]) {
    const said = await process.stderr();
    expect([process.title, said.includes(prompt), said.includes(fleet.endpoint.key)]).toEqual([
      process.title,
      false,
      false,
    ]);
  }
});

test("a request that went on to another machine is told with both of its jobs, and counted", async () => {
  const machine = { models: ["scripted"] };
  await using two = await startFleet({ machines: { attic: machine, cellar: machine } });
  const [gateway] = two.gateways;
  if (gateway === undefined) throw new Error("this fleet has no gateway");
  const says = "/script tokens=3 first_ms=4000 nonce=abc";
  const streamed = two.endpoint.stream({ model: "scripted", says });
  const runsIt = async () => {
    const told = await MetricsText.scrape(gateway.operationsUrl);
    return told.samples("trunkline_machine_running").find(({ value }) => value > 0)?.labels["machine"];
  };
  const first = await until(runsIt, { what: "the metrics to tell which machine runs it" });
  await two.agent(first).kill();
  const stream = await streamed;
  await stream.over;
  expect(stream.text).toBe("abc-0 abc-1 abc-2 ");
  const id = stream.response.headers.get("x-request-id");
  const line = await lineOf(gateway, ({ msg, request }) => msg === "request" && request === id);
  expect(line).toMatchObject({ outcome: "ok", failovers: 1, earlierJobs: [expect.stringMatching(/^\w{22}$/)] });
  expect(line["machine"]).not.toBe(first);
  expect(line["earlierJobs"]).not.toContain(line["job"]);
  const told = await MetricsText.scrape(gateway.operationsUrl);
  expect(told.value("trunkline_failovers_total", { machine: first, reason: "agent_disconnected" })).toBe(1);
  expect(told.value("trunkline_failovers_total")).toBe(1);
});
