import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findServers } from "../../harness/find-servers.ts";
import type { Asked } from "../../harness/load/ask-over-http.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { Load } from "../../harness/load/load.ts";
import { Operator } from "../../harness/operator.ts";
import { startUp } from "../../harness/start-trunkline.ts";
import { testPepper } from "../../harness/trunkline-command.ts";
import { until } from "../../harness/until.ts";

/**
 * Kills gateways by SIGKILL under load and compares the books with what the clients received:
 *
 *   npm run count:kills -- --kills 30              two gateways with NATS and Redis
 *   npm run count:kills -- --kills 30 --embedded   `trunkline up`
 */
const { values } = parseArgs({ options: { kills: { type: "string", default: "30" }, embedded: { type: "boolean" } } });
const kills = Number(values.kills);
const atOnce = 32;
const settledBeforeKill = 200;

interface Counts {
  readonly requests: number;
  readonly tokens: number;
}

interface Round {
  readonly finished: Counts;
  readonly cut: Counts;
  readonly booked: Counts;
}

/** A site whose gateway can be killed and started again. */
interface Site extends AsyncDisposable {
  readonly baseUrl: string;
  readonly place: { readonly redisUrl: string } | { readonly stateDir: string };
  /** The books are complete when they have not changed for so long. */
  readonly stillMs: number;
  kill(round: number): Promise<void>;
  revive(round: number): Promise<void>;
}

async function startGateways(): Promise<Site> {
  const found = await findServers();
  const machines = { attic: ["scripted"], cellar: ["scripted"] };
  const fleet = await BalancedFleet.start({ gateways: 2, machines, found });
  return {
    baseUrl: fleet.balancer.baseUrl,
    place: { redisUrl: fleet.redis.url },
    // The other gateway books what the killed one had under way after 15 s.
    stillMs: 20_000,
    kill: async (round) => fleet.gateways[round % 2]?.kill(),
    revive: async (round) => void (await fleet.startGateway(round % 2)),
    [Symbol.asyncDispose]: () => fleet[Symbol.asyncDispose](),
  };
}

async function startEmbedded(): Promise<Site> {
  const stateDir = await mkdtemp(join(tmpdir(), "trunkline-kills-"));
  const settings = { TRUNKLINE_STATE_DIR: stateDir, TRUNKLINE_KEY_PEPPER: testPepper };
  let up = await startUp(settings);
  const { baseUrl } = up.endpoint;
  return {
    baseUrl,
    place: { stateDir },
    stillMs: 2_000,
    kill: () => up.kill(),
    revive: async () => void (up = await startUp({ ...settings, TRUNKLINE_PORT: new URL(baseUrl).port })),
    async [Symbol.asyncDispose]() {
      await up[Symbol.asyncDispose]();
      await rm(stateDir, { recursive: true });
    },
  };
}

async function playRound(site: Site, round: number): Promise<Round> {
  await using operator = await Operator.on(site.place);
  const { token, record } = await operator.issue();
  const answers: Asked[] = [];
  // A whole answer that is cut off shows its client nothing to compare.
  const load = new Load({
    baseUrl: site.baseUrl,
    key: token.reveal(),
    wish: (index) => ({ tokens: 20 + ((index * 7) % 81), delayMs: 5 + (index % 10), streamed: true }),
    pace: { atOnce },
    afterRefusalMs: 50,
    onSettled: (asked) => void answers.push(asked),
  });
  await until(() => load.ledger.settled >= settledBeforeKill, { what: "the load to run", timeoutMs: 60_000 });
  await site.kill(round);
  await load.end();
  await site.revive(round);
  const booked = await untilBooked(async () => {
    const { requests = 0, completionTokens = 0 } = (await operator.usageSum(record.id)) ?? {};
    return { requests, tokens: completionTokens };
  }, site.stillMs);
  const begun = answers.filter(({ received }) => received.text !== "");
  return {
    finished: countsOf(begun.filter(({ outcome }) => outcome === "exact")),
    cut: countsOf(begun.filter(({ outcome }) => outcome !== "exact")),
    booked,
  };
}

/** Counts requests with a part of an answer, and the tokens that their clients received. */
function countsOf(answers: readonly Asked[]): Counts {
  const tokens = answers.map(({ received }) => received.text.split(" ").length - 1);
  return { requests: answers.length, tokens: tokens.reduce((sum, count) => sum + count, 0) };
}

/** Reads the books until they have not changed for a while. */
async function untilBooked(read: () => Promise<Counts>, stillMs: number): Promise<Counts> {
  let last = await read();
  let sinceMs = performance.now();
  const isStill = async (): Promise<boolean> => {
    const now = await read();
    if (now.requests !== last.requests || now.tokens !== last.tokens) [last, sinceMs] = [now, performance.now()];
    return performance.now() - sinceMs > stillMs;
  };
  await until(isStill, { what: "the books to be still", intervalMs: 100, timeoutMs: 60_000 });
  return last;
}

await using site = await (values.embedded ? startEmbedded() : startGateways());
const sum = { finished: 0, cut: 0, requestsMissed: 0, finishedTokens: 0, cutTokens: 0, tokensMissed: 0 };
for (let round = 0; round < kills; round += 1) {
  const { finished, cut, booked } = await playRound(site, round);
  const requestsMissed = finished.requests + cut.requests - booked.requests;
  const tokensMissed = finished.tokens + cut.tokens - booked.tokens;
  console.log(JSON.stringify({ round, finished, cut, booked, requestsMissed, tokensMissed }));
  sum.finished += finished.requests;
  sum.cut += cut.requests;
  sum.requestsMissed += requestsMissed;
  sum.finishedTokens += finished.tokens;
  sum.cutTokens += cut.tokens;
  sum.tokensMissed += tokensMissed;
}
console.log(JSON.stringify({ kills, ...sum }));
