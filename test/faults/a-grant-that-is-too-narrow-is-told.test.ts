import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fleetListing, type ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { Endpoint, refusalOf } from "../harness/endpoint.ts";
import { foundServers, lentOnly } from "../harness/found-servers.ts";
import { startNatsOnFiles, type NatsOnFiles } from "../harness/nats-on-files.ts";
import { Operator } from "../harness/operator.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { anywhere, demonstration, startAgent, startGateway, type GatewayProcess } from "../harness/start-trunkline.ts";
import { testPepper, trunkline, type Settings } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

interface Grants {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}
const wholeMachine: Grants = {
  publish: ["tl1.reply.*.attic.>", "tl1.presence.attic"],
  subscribe: ["tl1.machine.attic.>", "tl1.presence.attic", "tl1.rollcall"],
};
const wholeGateway: Grants = {
  publish: ["tl1.machine.>", "tl1.rollcall", "tl1.placed.*"],
  subscribe: ["tl1.reply.>", "tl1.presence.*", "tl1.placed.*"],
};
const without = ({ publish, subscribe }: Grants, subject: string): Grants => ({
  publish: publish.filter((each) => each !== subject),
  subscribe: subscribe.filter((each) => each !== subject),
});
const user = (name: string, { publish, subscribe }: Grants): string =>
  `{ user: ${name}, password: secret, permissions { publish: ${JSON.stringify(publish)}, subscribe: ${JSON.stringify(subscribe)} } }`;
const usersOf = ({ attic = wholeMachine, gateway = wholeGateway }: { attic?: Grants; gateway?: Grants }): string =>
  `authorization { users: [${user("attic", attic)}, ${user("gateway", gateway)}] }`;

const toldWithinMs = 15_000;

describe.skipIf(lentOnly("nats", "redis") || foundServers().nats.by !== "binary")(
  "a broker grant",
  { timeout: 60_000 },
  () => {
    let nats: NatsOnFiles;
    let redis: OwnServer;
    let parts: AsyncDisposableStack;
    beforeEach(async () => {
      parts = new AsyncDisposableStack();
      nats = parts.use(await startNatsOnFiles({ changeable: usersOf({}) }));
      redis = parts.use(await startRedisServer());
    });
    afterEach(() => parts.disposeAsync());

    const as = (name: string): string => nats.server.url.replace("//", `//${name}:secret@`);
    const stores = (): Settings => ({ TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper });
    const agentSettings = (): Settings => ({
      ...anywhere,
      ...demonstration,
      TRUNKLINE_SCRIPTED_MODELS: "scripted",
      TRUNKLINE_NATS_URL: as("attic"),
      TRUNKLINE_MACHINE: "attic",
    });

    async function withGateway() {
      const gateway: GatewayProcess = parts.use(await startGateway({ natsUrl: as("gateway"), redisUrl: redis.url }));
      await using operator = await Operator.on({ redisUrl: redis.url });
      const [admin, key] = [await operator.issue({ kind: "admin" }), await operator.issue()];
      const operations = new Endpoint({ baseUrl: `${gateway.operationsUrl}/admin/v1`, key: admin.token.reveal() });
      const fleet = async () => fleetListing.parse(await (await operations.get("/fleet")).json());
      const untilAttic = (wanted: Partial<ShownFleetMachine>): Promise<ShownFleetMachine> => {
        const fits = async (): Promise<ShownFleetMachine | undefined> =>
          (await fleet()).data.find(
            (each) => each.machine === "attic" && isDeepStrictEqual({ ...each, ...wanted }, each),
          );
        return until(fits, { what: `attic to be shown with ${JSON.stringify(wanted)}`, timeoutMs: toldWithinMs });
      };
      const run = (...args: string[]) =>
        trunklineHere(args, {
          TRUNKLINE_OPERATIONS_URL: gateway.operationsUrl,
          TRUNKLINE_ADMIN_KEY: operations.key,
          TRUNKLINE_STATE_DIR: "/nowhere",
        });
      const endpoint = new Endpoint({ baseUrl: gateway.baseUrl, key: key.token.reveal() });
      return { gateway, fleet, untilAttic, run, endpoint };
    }

    test("a broker grant that lacks tl1.reply is told by the agent, the gateway, `status` and `route`, until it is mended", async () => {
      await nats.reload(usersOf({ attic: without(wholeMachine, "tl1.reply.*.attic.>") }));
      const { gateway, untilAttic, run, endpoint } = await withGateway();
      const agent = parts.use(await TrunklineProcess.start({ args: ["agent"], settings: agentSettings() }));
      const denied = "NATS does not let its credential publish to tl1.reply.*.attic.>";
      await agent.logged(`this machine takes no work: ${denied}`);
      await untilAttic({ state: "waiting", takes_work: false, why: denied });
      expect(await gateway.logged("a machine takes no work")).toMatchObject({ machine: "attic", problem: denied });
      expect((await run("status")).out).toMatch(/^attic +waiting .* NATS does not let its credential publish to tl1/m);
      const route = await run("route", "scripted", "--json");
      expect(JSON.parse(route.out)).toMatchObject({ machines: [{ rank: null, reason: "denied", why: denied }] });

      await nats.reload(usersOf({}));
      await untilAttic({ state: "ready", takes_work: true, why: null });
      expect(await endpoint.answer({ model: "scripted", says: "/script tokens=2 delay_ms=0 nonce=a" })).toContain(
        "a-1",
      );
      expect((await agent.stderr()).match(/NATS does not let this credential publish/g)).toHaveLength(1);
    });

    test("a broker grant in which a machine may not publish its presence ends the agent, with the subject and the remedy in one line", async () => {
      const { subscribe } = wholeMachine;
      await nats.reload(usersOf({ attic: { publish: ["tl1.reply.*.attic.>"], subscribe } }));
      const { exitCode, stderr } = await trunkline(["agent"], agentSettings());
      const [line = ""] = stderr.split("\n").filter((each) => each.startsWith("trunkline: "));
      expect(line).toMatch(/NATS does not let .* tl1\.presence\.attic: .*TRUNKLINE_NATS_URL/);
      expect(exitCode).toBe(78);
    });

    test.each(["tl1.rollcall", "tl1.machine.attic.>"])(
      "a broker grant in which a machine may not subscribe to %s ends the agent, and `status` keeps the reason",
      async (subject) => {
        await nats.reload(usersOf({ attic: without(wholeMachine, subject) }));
        const { untilAttic } = await withGateway();
        const { exitCode, stderr } = await trunkline(["agent"], agentSettings());
        expect(stderr).toContain(`NATS does not let this credential subscribe to ${subject}`);
        expect(exitCode).toBe(78);
        const why = `NATS does not let its credential subscribe to ${subject}`;
        await untilAttic({ status: "offline", takes_work: false, why });
      },
    );

    test("a broker grant that is narrowed while jobs come is told within seconds, and no further job is lost there", async () => {
      const { untilAttic, endpoint } = await withGateway();
      parts.use(await startAgent({ natsUrl: as("attic"), machine: "attic", models: ["scripted"] }));
      await untilAttic({ takes_work: true, models: 1 });
      await nats.reload(usersOf({ attic: without(wholeMachine, "tl1.reply.*.attic.>") }));
      const lost = await endpoint.chat({ model: "scripted", says: "/script tokens=1" });
      expect(lost.status).toBeGreaterThanOrEqual(500);
      await untilAttic({ takes_work: false, why: "NATS does not let its credential publish to tl1.reply.*.attic.>" });
      const refused = refusalOf(endpoint.chat({ model: "scripted", says: "Hello" }));
      expect(await refused).toMatchObject({ code: "agent_offline" });
    });

    test.each([
      ["an agent of another name", "agent", { ...demonstration, TRUNKLINE_MACHINE: "cellar" }],
      ["a gateway", "gateway", anywhere],
    ])(
      "%s does not start with the credential of the machine attic, and says in one line why",
      async (_who, command, more) => {
        const { exitCode, stderr } = await trunkline([command], { TRUNKLINE_NATS_URL: as("attic"), ...more });
        const said = stderr.split("\n").filter((line) => line.startsWith("trunkline: "));
        expect(exitCode).toBe(78);
        expect(said).toEqual([
          expect.stringMatching(/does not let this credential subscribe to tl1\..*TRUNKLINE_MACHINE/),
        ]);
        expect(stderr).not.toContain(":secret@");
      },
    );

    test("a broker grant of a gateway that lacks tl1.rollcall ends the gateway at its start", async () => {
      await nats.reload(usersOf({ gateway: without(wholeGateway, "tl1.rollcall") }));
      const settings = { ...anywhere, TRUNKLINE_NATS_URL: as("gateway"), ...stores() };
      const { exitCode, stderr } = await trunkline(["gateway"], settings);
      expect(stderr).toMatch(/^trunkline: NATS does not let its credential publish to tl1\.rollcall: /m);
      expect(exitCode).toBe(78);
    });

    test("a broker grant of a gateway that lacks tl1.machine is told in `status` as the gateway's problem", async () => {
      await nats.reload(usersOf({ gateway: without(wholeGateway, "tl1.machine.>") }));
      const { fleet, run } = await withGateway();
      parts.use(await startAgent({ natsUrl: as("attic"), machine: "attic", models: ["scripted"] }));
      const problem = "NATS does not let its credential publish to tl1.machine.attic.>";
      await until(async () => (await fleet()).problem === problem, { what: "the problem", timeoutMs: toldWithinMs });
      expect((await run("status")).err).toContain(problem);
    });

    test("a broker grant of gateways that lacks tl1.placed is told once and in `status`, and jobs run on", async () => {
      await nats.reload(usersOf({ gateway: without(wholeGateway, "tl1.placed.*") }));
      const { gateway, fleet, untilAttic, run, endpoint } = await withGateway();
      const other = parts.use(await startGateway({ natsUrl: as("gateway"), redisUrl: redis.url }));
      const agent = parts.use(await startAgent({ natsUrl: as("attic"), machine: "attic", models: ["scripted"] }));
      await untilAttic({ takes_work: true, models: 1, why: null });
      for (const nonce of ["a", "b", "c"]) {
        const says = `/script tokens=2 delay_ms=0 nonce=${nonce}`;
        expect(await endpoint.answer({ model: "scripted", says })).toContain(`${nonce}-1`);
      }
      const lacks = "so gateways choose machines without each other's jobs";
      expect(await fleet()).toMatchObject({ problem: null, remark: expect.stringContaining(lacks) });
      expect(await run("status")).toMatchObject({ exitCode: 0, err: expect.stringContaining(lacks) });
      const readyz = await fetch(`${gateway.operationsUrl}/readyz`);
      expect(readyz.status).toBe(200);
      expect(await readyz.json()).toMatchObject({ ready: true, reasons: [expect.stringContaining("tl1.placed.*")] });
      for (const each of [gateway, other]) {
        const lines = (await each.stderr()).split("\n").filter((line) => line.includes("tl1.placed"));
        expect(lines.filter((line) => line.includes("publish to"))).toHaveLength(1);
        expect(lines.filter((line) => line.includes("subscribe to"))).toHaveLength(1);
        expect(lines.map((line) => JSON.parse(line).level)).toEqual([40, 40]);
      }
      expect(await agent.stderr()).not.toContain("tl1.placed");
    });
  },
);
