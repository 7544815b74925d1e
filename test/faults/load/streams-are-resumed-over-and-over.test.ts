import { setTimeout as pass } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { percentile } from "../../harness/load/load-ledger.ts";
import { Operator } from "../../harness/operator.ts";
import { TcpProxy } from "../../harness/tcp-proxy.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import { ReconnectingClients } from "../../harness/load/reconnecting-clients.ts";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { until } from "../../harness/until.ts";
import { lane } from "../lane.ts";
import { sized, testTimeoutMs, untilCounted } from "./lane.ts";

const cutsWanted = sized({ fast: 60, whole: 1_200 });
const killsWanted = sized({ fast: 3, whole: 10 });
const atOnce = 12;
const tokens = 120;
const delayMs = 15;
/** Resumed within this time after the reconnect, for nearly all; a goal that is printed and not asserted. */
const goalMs = 200;
/** An answer that is cut by a kill or with a line is booked as it was this long before. */
const bookedWithinMs = 100;

const none = { requests: 0, failed: 0, completionTokens: 0 };

test.skipIf(lentOnly("nats", "redis"))(
  `clients of three gateways that lose their connections over and over, ${cutsWanted} times in all and by killed gateways too, get every character once`,
  async () => {
    await using fleet = await BalancedFleet.start({ gateways: 3, machines: { attic: ["scripted"] } });
    const clients = new ReconnectingClients({ random: new SeededRandom(1), staysMaxMs: tokens * delayMs });
    const load = fleet.load({ wish: () => ({ tokens, delayMs }), pace: { atOnce }, ask: clients.resume });
    const cuts = (): number => clients.dropped + clients.broken;
    for (let kill = 0; kill < killsWanted; kill += 1) {
      const before = cuts();
      await until(() => cuts() > before + 3, { what: "some cuts", timeoutMs: testTimeoutMs / 2 });
      const index = kill % fleet.gateways.length;
      await fleet.gateways[index]?.kill();
      await fleet.startGateway(index);
    }
    await until(() => cuts() >= cutsWanted, { what: "all cuts", timeoutMs: testTimeoutMs / 2 });
    const ledger = await load.end();
    const p95Ms = Math.round(percentile(clients.resumedMs, 95) ?? 0);
    console.log(
      `${clients.dropped} connections dropped and ${clients.broken} lost with their gateway; resumed in ${p95Ms} ms at p95 (goal ${goalMs} ms)`,
    );
    expect(ledger.told).toEqual({});
    expect(ledger.of("exact")).toBe(ledger.sent);
    expect(clients.refusals.filter((refusal) => !refusal.includes("balancer_"))).toEqual([]);
    expect(clients.broken).toBeGreaterThan(0);
    if (!lane.isWhole) return;
    await using operator = await Operator.on({ redisUrl: fleet.redis.url });
    // The use of a killed gateway is booked after 15 s.
    const books = (await operator.stillUsage(18_000)).usage ?? none;
    console.log(`booked ${JSON.stringify(books)} of ${ledger.sent} answers with ${ledger.tokensServed} tokens`);
    // A client that had no event to go on from has asked anew, and its first answer is booked too.
    const anew = books.requests - ledger.sent;
    expect(anew).toBeLessThanOrEqual(clients.anew);
    expect(books.failed).toBeLessThanOrEqual(anew);
    expect(books.completionTokens).toBeLessThanOrEqual(ledger.tokensServed + anew * tokens);
    const tokensAtKills = (clients.broken * bookedWithinMs) / delayMs;
    expect(books.completionTokens).toBeGreaterThanOrEqual(ledger.tokensServed - tokensAtKills);
  },
  testTimeoutMs,
);

const mishaps: ["freezes" | "loses its line to NATS", number][] = [
  ["freezes", 5],
  ["freezes", 3],
  ["freezes", 9],
  ["freezes", 20],
  ["loses its line to NATS", 6],
  ["loses its line to NATS", 12],
];

describe.skipIf(lentOnly("nats", "redis"))("streams whose clients go on after some silence", () => {
  const parts = new AsyncDisposableStack();
  let fleet: BalancedFleet;
  let line: TcpProxy;
  let operator: Operator;
  beforeAll(async () => {
    const nats = parts.use(await startNatsServer({}));
    line = parts.use(await TcpProxy.before(nats.url));
    const natsUrl = ({ name }: { name: string }): string | undefined =>
      name === "gateway-0" ? `nats://127.0.0.1:${line.port}` : undefined;
    fleet = parts.use(await BalancedFleet.start({ gateways: 3, machines: { attic: ["scripted"] }, nats, natsUrl }));
    operator = parts.use(await Operator.on({ redisUrl: fleet.redis.url }));
  }, testTimeoutMs);
  afterAll(() => parts.disposeAsync());

  test.each(sized({ fast: mishaps.slice(0, 1), whole: mishaps }))(
    "streams of a gateway that %s for %i s are whole at another one, and booked once",
    async (what, seconds) => {
      const { token, record } = await operator.issue();
      const clients = new ReconnectingClients({ random: new SeededRandom(1), silentMs: 2_000 });
      const count = sized({ fast: 9, whole: 30 });
      // Some answers end while the gateway is away, and others go on after it is back.
      const wish = (index: number) => ({ tokens: 25 * (index % 2 === 0 ? 2 : seconds + 6), delayMs: 40 });
      const load = fleet.load({ key: token.reveal(), wish, count, pace: { atOnce: count }, ask: clients.resume });
      await untilCounted(load.ledger, "begun", count);
      if (what === "freezes") await fleet.gateways[0]?.freeze();
      else {
        line.refuse(true);
        line.cut();
      }
      await pass(seconds * 1_000);
      if (what === "freezes") await fleet.gateways[0]?.thaw();
      else line.refuse(false);
      const ledger = await load.over;
      expect(ledger.told).toEqual({});
      expect(clients.broken).toBeGreaterThan(0);
      const books = (await operator.stillUsage(4_000, record.id)).usage ?? none;
      expect(books).toMatchObject({ requests: count, failed: 0 });
      // A count that a gateway says in the moment of the cut may be lost, and the gateway books up to it all the same.
      const tokensAtCut = what === "freezes" ? 0 : (clients.broken * bookedWithinMs) / 40;
      expect(Math.abs(books.completionTokens - ledger.tokensServed)).toBeLessThanOrEqual(tokensAtCut);
      await fleet.untilComplete();
    },
    testTimeoutMs,
  );
});
