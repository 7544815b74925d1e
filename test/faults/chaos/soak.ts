import { setTimeout as pass } from "node:timers/promises";
import type { FoundServers } from "../../harness/found-servers.ts";
import type { Ask } from "../../harness/load/ask-over-http.ts";
import { ordinaryChats } from "../../harness/load/balanced-fleet.ts";
import type { LoadLedger } from "../../harness/load/load-ledger.ts";
import { ReconnectingClients } from "../../harness/load/reconnecting-clients.ts";
import type { ScriptedWish } from "../../harness/load/scripted-chat.ts";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { until } from "../../harness/until.ts";
import { drawFault, titleOf } from "./random-fault.ts";
import { gateways, machines, SoakedFleet } from "./soaked-fleet.ts";

const atOnce = 64;
/** Few enough that their kept answers stay below `idempotencyKeysMax` and `leftAnswersMax`. */
const reconnectingAtOnce = 6;
/** Clients that reconnect drop each connection within this time. */
const staysMaxMs = 1_200;
/** A single kill may find its machine without an answer that has begun. */
const killsSurelyFelt = 3;
/** When all is over, the fleet is as good as new within this. */
const healsWithinMs = 20_000;
const afterwards = 50;
const afterRefusalMs = 200;
const models = ["scripted", "scripted:plain"];

/** Answers whose clients drop their connections: some resume their streams, some repeat their requests. */
interface Reconnected {
  readonly clients: ReconnectingClients;
  readonly resumed: LoadLedger;
  readonly repeated: LoadLedger;
}

export interface Soaked {
  readonly ledger: LoadLedger;
  readonly reconnected: Reconnected;
  readonly faults: readonly string[];
  /** Processes that ended though nobody had ended them. */
  readonly fallen: readonly string[];
  /** Of the requests that were sent when all faults were over. */
  readonly afterwards: LoadLedger;
  readonly reconnectedAfterwards: Reconnected;
  readonly tookMs: number;
}

/** So many streams on a fleet that random faults befall, one every few seconds, as the seed decides. */
export async function soak(options: {
  readonly streams: number;
  readonly seed: number;
  readonly found?: FoundServers;
  readonly say?: (line: string) => void;
}): Promise<Soaked> {
  const { streams, seed, found, say = () => undefined } = options;
  await using soaked = await SoakedFleet.start(found);
  const { fleet } = soaked;
  const random = new SeededRandom(seed);
  const load = fleet.load({
    wish: soakedChats,
    pace: { atOnce },
    count: streams,
    afterRefusalMs,
  });
  const { ledger } = load;
  const reconnecting = reconnect(soaked, seed, {});
  const faults: string[] = [];
  const fallen: string[] = [];
  while (ledger.sent < streams) {
    const { fault, pauseMs } = drawFault(random, { gateways, machines });
    await pass(pauseMs);
    faults.push(titleOf(fault));
    say(`${ledger.settled} of ${streams} settled, ${ledger.of("exact")} exact: ${titleOf(fault)}`);
    await soaked.suffer(fault);
    fallen.push(...(await soaked.reviveFallen()));
  }
  await load.over;
  const reconnected = await reconnecting.end();
  const tookMs = performance.now() - load.startedAtMs;
  const healed = async (): Promise<boolean> => {
    const one = await fleet.load({ wish: () => ({ tokens: 1 }), pace: { atOnce: 1 }, count: 4 }).over;
    return one.of("exact") === one.sent;
  };
  const patience = { what: "the fleet to have healed", timeoutMs: healsWithinMs, intervalMs: 200 };
  // Told by the last requests, with all that was counted before.
  await until(healed, patience).catch(() => undefined);
  const last = await fleet.load({ wish: ordinaryChats, pace: { atOnce: 8 }, count: afterwards }).over;
  const reconnectedAfterwards = await reconnect(soaked, seed, { count: 4 * reconnectingAtOnce }).over();
  return { ledger, reconnected, faults, fallen, afterwards: last, reconnectedAfterwards, tookMs };
}

/** Starts the clients that reconnect. They go on until they are ended, or until each kind has asked for `count` answers. */
function reconnect({ fleet }: SoakedFleet, seed: number, counted: { readonly count?: number }) {
  const clients = new ReconnectingClients({ random: new SeededRandom(seed), staysMaxMs });
  const start = (ask: Ask, wish: (index: number) => ScriptedWish) =>
    fleet.load({ wish, pace: { atOnce: reconnectingAtOnce }, ask, ...counted });
  const resuming = start(clients.resume, (index) => ({ ...longChats(index), streamed: true }));
  const repeating = start(clients.repeat, longChats);
  const over = async (): Promise<Reconnected> => {
    const [resumed, repeated] = await Promise.all([resuming.over, repeating.over]);
    return { clients, resumed, repeated };
  };
  const end = (): Promise<Reconnected> => {
    void resuming.end();
    void repeating.end();
    return over();
  };
  return { over, end };
}

/** Answers of a second or two, so that most lose their connection once or more. */
function longChats(index: number): ScriptedWish {
  return { ...soakedChats(index), tokens: 80 + ((index * 7) % 81), delayMs: 5 + (index % 13) };
}

/** Fast ones and slow ones, so that faults find some at each phase; now and then one whose body goes in parts. */
function soakedChats(index: number): ScriptedWish {
  const large = index % 200 === 199 ? { paddingCharacters: 600_000 } : {};
  return {
    ...ordinaryChats(index),
    ...large,
    delayMs: index % 13,
    firstMs: index % 7 === 6 ? 200 : 0,
    model: models[index % models.length] ?? "scripted",
  };
}

/** What may never be, in words; nothing when all was well. */
export function violationsIn(soaked: Soaked, streams: number): string[] {
  const { ledger, reconnected, fallen, faults, afterwards: last, reconnectedAfterwards } = soaked;
  const { resumed, repeated, clients } = reconnected;
  const violations: string[] = [];
  const insist = (isSo: boolean, otherwise: string): void => void (isSo || violations.push(otherwise));
  const calm = { last, "last resumed": reconnectedAfterwards.resumed, "last repeated": reconnectedAfterwards.repeated };
  for (const [name, each] of Object.entries({ plain: ledger, resumed, repeated, ...calm })) {
    insist(each.of("silent") === 0, `${name}: ${each.of("silent")} answers ended like a success and were none`);
    insist(each.of("foreign") === 0, `${name}: ${each.of("foreign")} answers held what was not asked for`);
    const internal = Object.entries(each.told).filter(([what]) => what.endsWith("internal_error"));
    insist(internal.length === 0, `${name}: some were told internal_error: ${JSON.stringify(internal)}`);
  }
  insist(ledger.settled === streams, `${streams - ledger.settled} requests have no outcome`);
  insist(fallen.length === 0, `processes ended by themselves: ${fallen.join(", ")}`);
  for (const [name, each] of Object.entries(calm)) {
    const told = JSON.stringify(each.told);
    insist(each.of("exact") === each.sent, `${name}: when all was over, not all were served: ${told}`);
  }
  const { remade } = reconnectedAfterwards.clients;
  insist(remade === 0, `when all was over, ${remade} answers were made twice under one Idempotency-Key`);
  insist(clients.resumedMs.length > 0, "no stream was resumed");
  insist(clients.replayed > 0, "no answer was given again under its Idempotency-Key");
  const continued = ledger.continued + resumed.continued + repeated.continued;
  const kills = faults.filter((fault) => machines.some((machine) => fault.startsWith(`kill ${machine}`))).length;
  insist(continued > 0 || kills < killsSurelyFelt, `${kills} machines were killed, and no answer went on elsewhere`);
  return violations;
}
