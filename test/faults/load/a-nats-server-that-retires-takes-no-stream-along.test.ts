import { describe, expect, test } from "vitest";
import { foundServers, lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { NatsCluster } from "../../harness/load/nats-cluster.ts";
import { connectionsTo } from "../../harness/load/connections-to.ts";
import { until } from "../../harness/until.ts";
import { onlyInWholeLane } from "../lane.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const rounds = sized({ fast: 1, whole: 3 });
const atOnce = 50;
const movedWithinMs = 15_000;

const asContainer = (): boolean => foundServers().nats.by === "docker";
const skipped = lentOnly("nats", "redis") || asContainer() || process.platform !== "linux";

describe.skipIf(skipped || onlyInWholeLane("NATS servers that retire"))(
  "three NATS servers that are one broker",
  () => {
    test(
      "one retires as lame duck under load: its clients move to the others, and no stream fails",
      async () => {
        await using cluster = await NatsCluster.start(3);
        const [first] = cluster.servers;
        if (first === undefined) throw new Error("no server");
        await using fleet = await BalancedFleet.start({
          nats: first,
          natsUrl: () => cluster.url,
          gateways: 2,
          machines: { attic: ["scripted"], cellar: ["scripted"], desk: ["scripted"] },
        });
        const load = fleet.load({
          wish: (index) => ({ tokens: 100 + (index % 100), delayMs: 20, streamed: index % 5 !== 4 }),
          pace: { atOnce },
        });
        const { ledger } = load;
        await until(() => ledger.begun >= atOnce, { what: "streams to have begun", timeoutMs: 10_000 });
        for (let round = 0; round < rounds; round += 1) {
          const connections = await Promise.all(cluster.servers.map(({ port }) => connectionsTo(port)));
          const moving = Math.max(...connections);
          const server = cluster.servers[connections.indexOf(moving)] ?? first;
          cluster.retire(server);
          const moved = async (): Promise<boolean> => (await connectionsTo(server.port)) === 0;
          await until(moved, { what: `${moving} clients to move`, timeoutMs: movedWithinMs, intervalMs: 50 });
          const afterwards = ledger.sent + atOnce;
          await until(() => ledger.settled >= afterwards, { what: "requests from there on", timeoutMs: 20_000 });
          console.log(`${moving} clients moved`);
          await server.restart();
        }
        await load.end();
        console.log(ledger.summary("a server that retires"));
        expect(ledger.told).toEqual({});
        expect(ledger.of("exact")).toBe(ledger.sent);
      },
      testTimeoutMs,
    );
  },
);
