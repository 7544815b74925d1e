import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findServers } from "../../harness/find-servers.ts";
import type { Asked } from "../../harness/load/ask-over-http.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { Load } from "../../harness/load/load.ts";
import { differences, TeamTraffic } from "../../harness/load/team-traffic.ts";
import type { RequestRecord } from "#shared/requests/request-record.ts";
import { openRequests } from "#shared/requests/request-records.ts";
import { Operator } from "../../harness/operator.ts";
import { startUp } from "../../harness/start-trunkline.ts";
import { testPepper } from "../../harness/trunkline-command.ts";
import { until } from "../../harness/until.ts";

/**
 * Kills gateways by SIGKILL under load of a team and compares the books with what the clients received, and with each other:
 *
 *   npm run count:kills -- --kills 30              two gateways with NATS and Redis
 *   npm run count:kills -- --kills 30 --embedded   `trunkline up`
 */
const { values } = parseArgs({ options: { kills: { type: "string", default: "30" }, embedded: { type: "boolean" } } });
const kills = Number(values.kills);
const atOnce = 32;
const settledBeforeKill = 200;

/** A site whose gateway can be killed and started again. */
interface Site extends AsyncDisposable {
  readonly baseUrl: string;
  readonly place: { readonly redisUrl: string } | { readonly stateDir: string };
  /** The books are complete when they have not changed for so long. */
  readonly stillMs: number;
  /** Returns true if the gateway was without its store when it was killed, and so had ends that it could not book. */
  kill(round: number): Promise<boolean>;
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
    async kill(round) {
      const gateway = fleet.gateways[round % 2];
      await gateway?.kill();
      const said = (await gateway?.logLines()) ?? [];
      const turns = said.flatMap(
        ({ msg }) => /^the book of limits (does not answer|answers again)/.exec(msg)?.[1] ?? [],
      );
      return turns.at(-1) === "does not answer";
    },
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
    async kill() {
      await up.kill();
      return false;
    },
    revive: async () => void (up = await startUp({ ...settings, TRUNKLINE_PORT: new URL(baseUrl).port })),
    async [Symbol.asyncDispose]() {
      await up[Symbol.asyncDispose]();
      await rm(stateDir, { recursive: true });
    },
  };
}

/** How the requests of a load ended for their clients, under which a gateway was killed. */
interface Round {
  readonly answers: readonly Asked[];
  readonly wasAway: boolean;
}

async function playRound(site: Site, { ask }: TeamTraffic, round: number): Promise<Round> {
  const answers: Asked[] = [];
  // A whole answer that is cut off shows its client nothing to compare.
  const load = new Load({
    baseUrl: site.baseUrl,
    key: "",
    ask,
    wish: (index) => ({ tokens: 20 + ((index * 7) % 81), delayMs: 5 + (index % 10), streamed: true }),
    pace: { atOnce },
    afterRefusalMs: 50,
    onSettled: (asked) => void answers.push(asked),
  });
  await until(() => load.ledger.settled >= settledBeforeKill, { what: "the load to run", timeoutMs: 60_000 });
  const wasAway = await site.kill(round);
  await load.end();
  await site.revive(round);
  return { answers: answers.filter(({ received }) => received.text !== ""), wasAway };
}

const tokensOf = ({ received }: Asked): number => received.text.split(" ").length - 1;

await using site = await (values.embedded ? startEmbedded() : startGateways());
await using operator = await Operator.on(site.place);
const traffic = await TeamTraffic.of(operator);
const rounds: Round[] = [];
for (let round = 0; round < kills; round += 1) rounds.push(await playRound(site, traffic, round));
const { usage: booked } = await operator.stillUsage(site.stillMs);

const records = new Map<string, RequestRecord[]>();
const take = (record: RequestRecord): void => void records.getOrInsertComputed(record.id, () => []).push(record);
await openRequests(operator.store.state).visit({}, take);
const sum = {
  killedAway: 0,
  finished: 0,
  finishedWrong: 0,
  finishedWrongAway: 0,
  cut: 0,
  cutUnbooked: 0,
  tokens: 0,
  tokensCut: 0,
  tokensCutMissed: 0,
  cutMissedMost: 0,
};
function count(answer: Asked, wasAway: boolean): void {
  const [record] = records.get(answer.requestId ?? "") ?? [];
  const tokens = tokensOf(answer);
  sum.tokens += tokens;
  if (answer.outcome === "exact") {
    sum.finished += 1;
    if (record?.code !== "ok" || record.completionTokens !== tokens)
      sum[wasAway ? "finishedWrongAway" : "finishedWrong"] += 1;
    return;
  }
  const missed = tokens - (record?.completionTokens ?? 0);
  sum.cut += 1;
  sum.tokensCut += tokens;
  sum.tokensCutMissed += missed;
  sum.cutMissedMost = Math.max(sum.cutMissedMost, missed);
  if (record === undefined) sum.cutUnbooked += 1;
}
for (const { answers, wasAway } of rounds) {
  if (wasAway) sum.killedAway += 1;
  for (const answer of answers) count(answer, wasAway);
}
const all = [...records.values()].flat();
const recorded = { requests: all.length, tokens: all.reduce((tokens, each) => tokens + each.completionTokens, 0) };
const twice = [...records.values()].filter(({ length }) => length > 1).length;
const sums = await traffic.sums();
const unequal = [
  [sums.rows, sums.records],
  [sums.spentByRows, sums.spent],
].flatMap(([one, other]) => differences(one, other));
console.log(JSON.stringify({ kills, ...sum, twice, recorded, booked, unequal }, undefined, 2));
