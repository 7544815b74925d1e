import { test } from "vitest";
import { foundServers, lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { NatsCluster } from "../../harness/load/nats-cluster.ts";
import { connectionsTo } from "../../harness/load/connections-to.ts";
import { until } from "../../harness/until.ts";
import { onlyInWholeLane } from "../lane.ts";
import { expectExact, sized, testTimeoutMs, untilCounted } from "./lane.ts";

const rounds = sized({ fast: 1, whole: 3 });
const atOnce = 50;
const movedWithinMs = 15_000;

const asContainer = (): boolean => foundServers().nats.by === "docker";
const skipped = lentOnly("nats", "redis") || asContainer() || process.platform !== "linux";

test.skipIf(skipped || onlyInWholeLane("NATS servers that retire"))(
  "one of three NATS servers retires as lame duck under load: its clients move to the others, and no stream fails",
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
    await untilCounted(ledger, "begun", atOnce);
    for (let round = 0; round < rounds; round += 1) {
      const connections = await Promise.all(cluster.servers.map(({ port }) => connectionsTo(port)));
      const moving = Math.max(...connections);
      const server = cluster.servers[connections.indexOf(moving)] ?? first;
      cluster.retire(server);
      const moved = async (): Promise<boolean> => (await connectionsTo(server.port)) === 0;
      await until(moved, { what: `${moving} clients to move`, timeoutMs: movedWithinMs, intervalMs: 50 });
      await untilCounted(ledger, "settled", ledger.sent + atOnce);
      console.log(`${moving} clients moved`);
      await server.restart();
    }
    await load.end();
    expectExact(ledger, "a server that retires");
  },
  testTimeoutMs,
);
