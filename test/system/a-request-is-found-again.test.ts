import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { launchTrunkline } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import type { LogLine, TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

const prompt = "a canary sang to the prompt";
const job = expect.stringMatching(/^\w{22}$/);

describe.skipIf(lentOnly("nats", "redis"))("a request that has ended", () => {
  let fleet: Fleet;
  beforeAll(async () => {
    const machine = { models: ["scripted"], env: { TRUNKLINE_LOG_LEVEL: "debug" } };
    // A stream that fails then does not go on at the other machine.
    const gatewayEnv = { TRUNKLINE_CONTINUE: "off" };
    fleet = await startFleet({ gateways: 2, machines: { attic: machine, cellar: machine }, gatewayEnv });
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  const idOf = (answer: Response): string => answer.headers.get("x-request-id") ?? "";
  const keyId = (): string => fleet.endpoint.key.split("_")[1] ?? "";

  /** The first line of a process's log like this, as soon as it is there. */
  function lineOf(of: TrunklineProcess, like: (line: LogLine) => boolean): Promise<LogLine> {
    return until(async () => (await of.logLines()).find(like), { what: `the line in the log of ${of.title}` });
  }

  const atGatewayOf = (response: Response): Promise<LogLine> =>
    lineOf(fleet.gateway, ({ msg, request }) => msg === "request" && request === idOf(response));

  /** The gateway's line of a request, and the machine's of its job. */
  async function linesOf(response: Response): Promise<{ atGateway: LogLine; onMachine: LogLine }> {
    const atGateway = await atGatewayOf(response);
    const machine = fleet.agent(String(atGateway["machine"]));
    return { atGateway, onMachine: await lineOf(machine, (line) => line["job"] === atGateway["job"]) };
  }

  test("the logs of gateway and machine tell of one request with the same job, key and model", async () => {
    const says = `/script tokens=5 delay_ms=5\n${prompt}`;
    const stream = await fleet.endpoint.stream({ model: "scripted", says });
    await stream.over;
    const { atGateway, onMachine } = await linesOf(stream.response);
    const about = { key: keyId(), model: "scripted" };
    const times = { firstTokenMs: expect.any(Number), completionTokens: 5 };
    expect(atGateway).toMatchObject({ ...about, ...times, job, status: 200, outcome: "ok" });
    expect(atGateway).not.toHaveProperty("earlierJobs");
    expect(atGateway).not.toHaveProperty("failovers");
    expect(onMachine).toMatchObject({ ...about, msg: "job done", gateway: job });
  });

  test("the logs of gateway and machine tell of one that failed in a stream, each with its own word", async () => {
    const says = `/script tokens=5 delay_ms=5 fail_at=3\n${prompt}`;
    const stream = await fleet.endpoint.stream({ model: "scripted", says });
    await stream.over;
    const { atGateway, onMachine } = await linesOf(stream.response);
    const { request, machine } = atGateway;
    const about = { key: keyId(), model: "scripted" };
    expect(atGateway).toMatchObject({ status: 200, outcome: "upstream_error", completionTokens: 3 });
    expect(onMachine).toMatchObject({ ...about, msg: "job failed", code: "upstream_error" });
    const failed = await lineOf(fleet.gateway, ({ msg }) => msg === "stream failed");
    expect(failed).toMatchObject({ ...about, request, job: atGateway["job"], machine });
  });

  test("the logs of gateway and machine tell of a client that left, and of a request that no machine was asked for", async () => {
    const leaving = new AbortController();
    const fields = { model: "scripted", says: "/script tokens=1000 delay_ms=20" };
    const stream = await fleet.endpoint.stream(fields, leaving.signal);
    await until(() => stream.text !== "", { what: "the first token" });
    leaving.abort();
    const { atGateway, onMachine } = await linesOf(stream.response);
    expect(atGateway).toMatchObject({ outcome: "client_closed", key: keyId() });
    expect(onMachine).toMatchObject({ msg: "job cancelled" });
    const line = await atGatewayOf(await fleet.endpoint.chat({ model: "absent", says: prompt }));
    expect(line).toMatchObject({ outcome: "model_not_found", status: 404, key: keyId(), model: "absent" });
    expect(line).not.toHaveProperty("job");
  });

  test("the logs of gateway and machine hold nothing of what was said, and no key", async () => {
    for (const process of [fleet.gateway, fleet.agent("attic"), fleet.agent("cellar")]) {
      const said = await process.stderr();
      expect(said).not.toContain(prompt);
      expect(said).not.toContain(fleet.endpoint.key);
    }
  });

  const requests = (...args: readonly string[]) => trunklineHere(["requests", ...args], fleet.keyStore);

  function shown(id: string): Promise<ShownRequest> {
    const look = async (): Promise<ShownRequest | false> => {
      const { exitCode, out } = await requests("show", id, "--json");
      return exitCode === 0 && (JSON.parse(out) as ShownRequest);
    };
    return until(look, { what: `the record of ${id}` });
  }

  test("an ended request is found again by the command line at whatever gateway it ran, with its machine, its times, its tokens and why that machine", async () => {
    for (const endpoint of fleet.endpoints) {
      const answer = await endpoint.chat({ model: "scripted", says: "/script tokens=7 nonce=secret-words" });
      const record = await shown(idOf(answer));
      expect(record).toMatchObject({ code: "ok", status: 200, ended_by: "machine", completion_tokens: 7 });
      expect(record.advice).toBeNull();
      expect(record.machine).toBe(answer.headers.get("x-trunkline-machine"));
      expect(record.tried).toHaveLength(1);
      expect(record.tried[0]?.others[0]?.machine).toBe(record.machine === "attic" ? "cellar" : "attic");
      expect(record.tried[0]?.why).toMatch(/costs least|cached/);
      expect(JSON.stringify(record)).not.toContain("secret-words");
      const { out } = await requests("--since", "5m", "--key", "test");
      expect(out).toMatch(new RegExp(`${idOf(answer)} +200  test  `));
    }
    const { err, exitCode } = await requests("--key", "nobody");
    expect([exitCode, err]).toEqual([1, expect.stringContaining("No key has this id or this name")]);
  });

  test("an ended request is found again by the command line as it ends, while the command line follows", async () => {
    await using following = await launchTrunkline(["requests", "--follow", "--json"], fleet.keyStore);
    const id = idOf(await fleet.endpoint.chat({ model: "scripted", says: "/script tokens=1" }));
    const isTold = async (): Promise<boolean> => (await following.stdout()).includes(id);
    await until(isTold, { what: `the request ${id} to be told` });
    const later = idOf(await fleet.endpoint.chat({ model: "scripted", says: "/script tokens=1" }));
    const lines = async (): Promise<readonly string[]> => (await following.stdout()).trim().split("\n");
    await until(async () => (await lines()).some((line) => line.includes(later)), { what: "the next one to be told" });
    expect((await lines()).filter((line) => line.includes(id))).toHaveLength(1);
  });

  test("a request whose machine died under it is told with both of its jobs in the log, in the metrics and by the command line", async () => {
    const scrape = () => MetricsText.scrape(fleet.gateway.operationsUrl);
    const streamed = fleet.endpoint.stream({ model: "scripted", says: "/script tokens=3 first_ms=4000 nonce=abc" });
    const runsIt = async () => {
      const told = (await scrape()).samples("trunkline_machine_running");
      return told.find(({ value }) => value > 0)?.labels["machine"];
    };
    const first = await until(runsIt, { what: "the metrics to tell which machine runs it" });
    await fleet.agent(first).kill();
    const stream = await streamed;
    await stream.over;
    expect(stream.text).toBe("abc-0 abc-1 abc-2 ");
    const line = await atGatewayOf(stream.response);
    expect(line).toMatchObject({ outcome: "ok", failovers: 1, earlierJobs: [job] });
    expect(line["machine"]).not.toBe(first);
    expect(line["earlierJobs"]).not.toContain(line["job"]);
    const counted = await scrape();
    expect(counted.value("trunkline_failovers_total", { machine: first, reason: "agent_disconnected" })).toBe(1);
    expect(counted.value("trunkline_failovers_total")).toBe(1);
    const record = await shown(idOf(stream.response));
    expect(record.tried.map(({ machine, code }) => [machine, code])).toEqual([
      [first, "agent_disconnected"],
      [record.machine, null],
    ]);
    const { out } = await requests("show", record.id);
    expect(out).toMatch(new RegExp(`ms  ${first} refused it or failed: agent_`));
    expect(out).toMatch(/ms {2}ended by the machine: ok, status 200/);
  });

  test("an ended request is found again by the command line when it failed, with its cause and what to do about it", async () => {
    await Promise.all(["attic", "cellar"].map((machine) => fleet.agent(machine).kill()));
    const failing = async (): Promise<Response | false> => {
      const answer = await fleet.endpoint.chat({ model: "scripted", says: "/script tokens=1" });
      await answer.text();
      return answer.status === 503 && answer;
    };
    const record = await shown(idOf(await until(failing, { what: "the machines to be away" })));
    expect(record).toMatchObject({ code: "agent_offline", status: 503, ended_by: "machine", machine: null });
    expect(record.advice).toContain("trunkline status");
    expect((await requests("--failed", "--json")).out).toContain(record.id);
  });
});
