import { setTimeout as pass } from "node:timers/promises";
import type { FoundServers } from "../../harness/found-servers.ts";
import { ordinaryChats } from "../../harness/load/balanced-fleet.ts";
import type { LoadLedger } from "../../harness/load/load-ledger.ts";
import type { ScriptedWish } from "../../harness/load/scripted-chat.ts";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { until } from "../../harness/until.ts";
import { drawFault, titleOf } from "./random-fault.ts";
import { gateways, machines, SoakedFleet } from "./soaked-fleet.ts";

const atOnce = 64;
/** When all is over, the fleet is as good as new within this. */
const healsWithinMs = 20_000;
const afterwards = 50;
const afterRefusalMs = 200;
const models = ["scripted", "scripted:plain"];

export interface Soaked {
  readonly ledger: LoadLedger;
  readonly faults: readonly string[];
  /** Processes that ended though nobody had ended them. */
  readonly fallen: readonly string[];
  /** Of the requests that were sent when all faults were over. */
  readonly afterwards: LoadLedger;
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
  const tookMs = performance.now() - load.startedAtMs;
  const healed = async (): Promise<boolean> => {
    const one = await fleet.load({ wish: () => ({ tokens: 1 }), pace: { atOnce: 1 }, count: 4 }).over;
    return one.of("exact") === one.sent;
  };
  const patience = { what: "the fleet to have healed", timeoutMs: healsWithinMs, intervalMs: 200 };
  // Told by the last requests, with all that was counted before.
  await until(healed, patience).catch(() => undefined);
  const last = await fleet.load({ wish: ordinaryChats, pace: { atOnce: 8 }, count: afterwards }).over;
  return { ledger, faults, fallen, afterwards: last, tookMs };
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
export function violationsIn({ ledger, fallen, afterwards: last }: Soaked, streams: number): string[] {
  const violations: string[] = [];
  const insist = (isSo: boolean, otherwise: string): void => void (isSo || violations.push(otherwise));
  insist(ledger.of("silent") === 0, `${ledger.of("silent")} answers ended like a success and were none`);
  insist(ledger.of("foreign") === 0, `${ledger.of("foreign")} answers held what was not asked for`);
  insist(ledger.settled === streams, `${streams - ledger.settled} requests have no outcome`);
  insist(fallen.length === 0, `processes ended by themselves: ${fallen.join(", ")}`);
  const internal = Object.entries(ledger.told).filter(([what]) => what.endsWith("internal_error"));
  insist(internal.length === 0, `some were told internal_error: ${JSON.stringify(internal)}`);
  insist(last.of("exact") === last.sent, `when all was over, not all were served: ${JSON.stringify(last.told)}`);
  return violations;
}
