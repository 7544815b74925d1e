import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { launchTrunkline, trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

describe.skipIf(lentOnly("nats", "redis"))("an ended request is found again by the command line", () => {
  let fleet: Fleet;
  beforeEach(async () => {
    const machine = { models: ["scripted"] };
    fleet = await startFleet({ gateways: 2, machines: { attic: machine, cellar: machine } });
  });
  afterEach(() => fleet[Symbol.asyncDispose]());

  const idOf = (answer: Response): string => answer.headers.get("x-request-id") ?? "";

  async function shown(id: string): Promise<ShownRequest> {
    return until(
      async () => {
        const { exitCode, stdout } = await trunkline(["requests", "show", id, "--json"], fleet.keyStore);
        return exitCode === 0 && (JSON.parse(stdout) as ShownRequest);
      },
      { what: `the record of ${id}` },
    );
  }

  test("an ended request is found again by the command line at whatever gateway it ran, with its machine, its times, its tokens and why that machine", async () => {
    const [one, other] = fleet.endpoints;
    const says = "/script tokens=7 nonce=secret-words";
    const first = await one?.chat({ model: "scripted", says });
    const second = await other?.chat({ model: "scripted", says });
    if (first === undefined || second === undefined) throw new Error("a gateway is missing");
    for (const answer of [first, second]) {
      const record = await shown(idOf(answer));
      expect(record).toMatchObject({
        code: "ok",
        status: 200,
        ended_by: "machine",
        completion_tokens: 7,
        advice: null,
      });
      expect(record.machine).toBe(answer.headers.get("x-trunkline-machine"));
      expect(record.tried).toHaveLength(1);
      expect(record.tried[0]?.others[0]?.machine).toBe(record.machine === "attic" ? "cellar" : "attic");
      expect(record.tried[0]?.why).toMatch(/costs least|cached/);
      expect(JSON.stringify(record)).not.toContain("secret-words");
    }
    const { stdout } = await trunkline(["requests", "--since", "5m", "--key", "test"], fleet.keyStore);
    expect(stdout).toMatch(new RegExp(`${idOf(first)} +200  test  `));
    expect(stdout).toMatch(new RegExp(`${idOf(second)} +200  test  `));
    const { stderr, exitCode } = await trunkline(["requests", "--key", "nobody"], fleet.keyStore);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("No key has this id or this name")]);
  });

  test("an ended request is found again by the command line with the machine that died under it, when another one gave the answer", async () => {
    const answering = fleet.endpoint.chat({ model: "scripted", says: "/script tokens=5 first_ms=4000" });
    const busy = await until(
      async () => {
        const metrics = await (await fetch(`${fleet.gateways[0]?.operationsUrl}/metrics`)).text();
        return /^trunkline_machine_running\{.*machine="(\w+)".*\} 1$/m.exec(metrics)?.[1];
      },
      { what: "a machine to run it" },
    );
    await fleet.agent(busy).kill();
    const record = await shown(idOf(await answering));
    const codes = record.tried.map(({ machine, code }) => [machine, code]);
    expect(codes).toEqual([
      [busy, expect.stringMatching(/^agent_(?:offline|disconnected)$/)],
      [record.machine, null],
    ]);
    const { stdout } = await trunkline(["requests", "show", record.id], fleet.keyStore);
    expect(stdout).toMatch(new RegExp(`ms  ${busy} refused it or failed: agent_`));
    expect(stdout).toMatch(/ms {2}ended by the machine: ok, status 200/);
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

  test("an ended request is found again by the command line when it failed, with its cause and what to do about it", async () => {
    await Promise.all(["attic", "cellar"].map((machine) => fleet.agent(machine).kill()));
    const failed = await until(
      async () => {
        const answer = await fleet.endpoint.chat({ model: "scripted", says: "/script tokens=1" });
        await answer.text();
        return answer.status === 503 && answer;
      },
      { what: "the machines to be away" },
    );
    const record = await shown(idOf(failed));
    expect(record).toMatchObject({ code: "agent_offline", status: 503, ended_by: "machine", machine: null });
    expect(record.advice).toContain("trunkline status");
    const { stdout } = await trunkline(["requests", "--failed", "--json"], fleet.keyStore);
    expect(stdout).toContain(record.id);
  });
});
