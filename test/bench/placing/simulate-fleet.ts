import { SeededRandom } from "../../harness/seeded-random.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import type { Arrival, SimulatedFleet } from "./fleets.ts";
import { byTable, freeThenOldest, type PlacingRouter, ProductRouter, type RouterParts } from "./placing-routers.ts";
import {
  EngineMachine,
  PlacedMachine,
  type MachineParts,
  type SimulatedJob,
  type SimulatedMachine,
} from "./simulated-machine.ts";

export interface Policy {
  readonly name: string;
  readonly title: string;
  /** True if the agents place models; otherwise engines load by themselves. */
  readonly places: boolean;
  readonly isOracle?: boolean;
  /** The models that each machine holds from the beginning on, by a table for the whole demand. */
  readonly isPinned?: boolean;
  readonly router: (parts: RouterParts, table: Table) => PlacingRouter;
}

export const policies: readonly Policy[] = [
  {
    name: "today",
    title: "the engine's own loads in place of the least recently used model, behind the routing without memory",
    places: false,
    router: (parts) => new ProductRouter(parts, 1),
  },
  {
    name: "localai",
    title: "LocalAI's policy: free memory first, then the least recently used model",
    places: false,
    router: freeThenOldest,
  },
  {
    name: "static",
    title: "models pinned for the demand of the whole run; the others take turns in what is left",
    places: false,
    isPinned: true,
    router: byTable,
  },
  {
    name: "trunkline-1",
    title: "agents place, one gateway",
    places: true,
    router: (parts) => new ProductRouter(parts, 1),
  },
  {
    name: "trunkline-4",
    title: "agents place, four gateways",
    places: true,
    router: (parts) => new ProductRouter(parts, 4),
  },
  {
    name: "oracle",
    title: "agents place and know when each model is asked for next",
    places: true,
    isOracle: true,
    router: (parts) => new ProductRouter(parts, 1),
  },
];

export interface FleetResult {
  readonly requests: number;
  readonly meanFirstMs: number;
  readonly p99FirstMs: number;
  readonly worstFirstMs: number;
  readonly loads: number;
  /** Models that made room for others. */
  readonly swaps: number;
  readonly lost: number;
}

const tickMs = 100;
/** Gateways notice the death of a machine after this time. */
const noticedMs = 3_000;
/** A run ends even if requests are left, which count as lost. */
const lateMs = 4 * 3_600_000;

/** Runs the requests of a fleet in simulated time. */
export async function simulateFleet(fleet: SimulatedFleet, policy: Policy, seed: number): Promise<FleetResult> {
  const clock = new TurnableClock();
  const random = new SeededRandom(seed);
  const arrivals = fleet.arrivals(random);
  const table = tableFor(fleet, arrivals);
  const names = fleet.machines.map((_, place) => `machine-${place + 1}`);
  const machines = new Map<string, SimulatedMachine | undefined>();
  const counts = { loads: 0, displaced: 0 };
  const nextAtMs = nextOf(arrivals, clock);
  const start = async (place: number): Promise<SimulatedMachine> => {
    const [spec, name = ""] = [fleet.machines[place], names[place]];
    if (spec === undefined) throw new Error(`there is no machine ${place}`);
    const isElsewhere = (model: string): boolean =>
      [...machines].some(([other, machine]) => other !== name && machine?.loaded.has(model) === true);
    const returnsInMs = (model: string): number => (isElsewhere(model) ? Infinity : nextAtMs(model) - clock.now());
    const parts: MachineParts = {
      spec,
      models: fleet.models.filter(({ memoryMb }) => memoryMb <= spec.memoryMb),
      clock,
      returnsInMs: policy.isOracle && fleet.clients === undefined ? returnsInMs : undefined,
      pinned: policy.isPinned ? table.pinned.get(name) : undefined,
    };
    return policy.places ? await PlacedMachine.start(parts) : new EngineMachine(parts);
  };
  for (const [place, name] of names.entries()) machines.set(name, await start(place));
  const slots = fleet.machines[0]?.engine.slots ?? 1;
  const router = policy.router({ machines, slots, clock, random }, table.placed);

  const firsts: number[] = [];
  const all = arrivals.length + (fleet.clients ?? []).reduce((sum, { requests }) => sum + requests, 0);
  let [sent, answered] = [0, 0];
  const put = (job: SimulatedJob): void => {
    const chosen = router.choose(job);
    const machine = machines.get(chosen);
    // A machine that died a moment ago takes nothing; the gateway notices by its silence.
    if (machine === undefined) clock.after(noticedMs, () => put(job));
    else machine.submit(job);
  };
  const send = ({ model, promptTokens, answerTokens }: Omit<Arrival, "atMs">, then?: () => void): void => {
    const [id, sentAtMs] = [sent++, clock.now()];
    let hasBegun = false;
    const job: SimulatedJob = {
      id,
      model,
      request: { id, promptTokens, answerTokens, promptBlocks: [], allBlocks: [] },
      placedAtMs: sentAtMs,
      first: () => {
        if (!hasBegun) firsts.push(clock.now() - sentAtMs);
        hasBegun = true;
        router.first?.(job);
      },
      ended: () => {
        answered += 1;
        router.ended?.(job, "answered");
        then?.();
      },
    };
    put(job);
  };
  const follow = (at: number): void => {
    const arrival = arrivals[at];
    if (arrival === undefined) return;
    clock.after(arrival.atMs - clock.now(), () => {
      send(arrival);
      follow(at + 1);
    });
  };
  follow(0);
  for (const { model, requests, pauseMs } of fleet.clients ?? []) {
    const ask = (left: number): void => {
      if (left === 0) return;
      const sizes = { promptTokens: random.between(100, 1_500), answerTokens: random.between(50, 300) };
      clock.after(pauseMs, () => send({ model, ...sizes }, () => ask(left - 1)));
    };
    ask(requests);
  }
  let death = fleet.death;
  const tick = clock.every(tickMs, () => {
    router.tick?.();
    if (death === undefined || clock.now() < death.afterMs) return;
    const [{ machine: at, awayMs }, name = ""] = [death, names[death.machine]];
    const dying = machines.get(name);
    if (dying?.loading === undefined) return;
    death = undefined;
    const lost = [...dying.open.values()];
    counts.loads += dying.counts.loads;
    counts.displaced += dying.counts.displaced;
    dying.stop();
    machines.set(name, undefined);
    clock.after(noticedMs, () => {
      router.changed?.(name);
      for (const job of lost) {
        router.ended?.(job, "lost");
        put(job);
      }
    });
    clock.after(awayMs, () => {
      void (async () => {
        machines.set(name, await start(at));
        router.changed?.(name);
      })();
    });
  });
  const isOver = (): boolean => answered === all || clock.now() >= lateMs;
  while (!isOver()) await clock.advanceAwaiting(10_000);
  tick.cancel();
  for (const machine of machines.values()) {
    counts.loads += machine?.counts.loads ?? 0;
    counts.displaced += machine?.counts.displaced ?? 0;
    machine?.stop();
  }
  const sorted = firsts.toSorted((one, other) => one - other);
  return {
    requests: all,
    meanFirstMs: sorted.reduce((sum, ms) => sum + ms, 0) / sorted.length,
    p99FirstMs: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    worstFirstMs: sorted.at(-1) ?? 0,
    loads: counts.loads,
    swaps: counts.displaced,
    lost: all - answered,
  };
}

function nextOf(arrivals: readonly Arrival[], clock: TurnableClock): (model: string) => number {
  const times = Map.groupBy(arrivals, ({ model }) => model);
  return (model) => times.get(model)?.find(({ atMs }) => atMs > clock.now())?.atMs ?? Infinity;
}

export type Table = ReadonlyMap<string, readonly string[]>;

/**
 * Pins models, each where most memory is left: all of them, if they fit, and second copies of those that are asked for
 * most; else those that are asked for most, as long as one machine keeps room for the largest of the others.
 */
function tableFor(fleet: SimulatedFleet, arrivals: readonly Arrival[]) {
  const asked = Map.groupBy(arrivals, ({ model }) => model);
  const byDemand = fleet.models.toSorted(
    (one, other) => (asked.get(other.id)?.length ?? 0) - (asked.get(one.id)?.length ?? 0),
  );
  const bySize = fleet.models.toSorted((one, other) => other.memoryMb - one.memoryMb);
  const whole = new Pins(fleet);
  if (bySize.every(({ id, memoryMb }) => whole.pin(id, memoryMb))) {
    for (const { id, memoryMb } of byDemand) whole.pin(id, memoryMb);
    return whole;
  }
  const pins = new Pins(fleet);
  for (const { id, memoryMb } of byDemand) {
    const others = bySize.filter((each) => each.id !== id && !pins.placed.has(each.id));
    if (pins.roomiest()[1] - memoryMb >= (others[0]?.memoryMb ?? 0)) pins.pin(id, memoryMb);
  }
  const [swapping] = pins.roomiest();
  for (const { id } of fleet.models) if (!pins.placed.has(id)) pins.placed.set(id, [swapping]);
  return pins;
}

/** The models that are pinned to machines. */
class Pins {
  readonly placed = new Map<string, string[]>();
  /** The models of each machine. */
  readonly pinned = new Map<string, Set<string>>();
  readonly #leftMb: Map<string, number>;

  constructor({ machines }: SimulatedFleet) {
    this.#leftMb = new Map(machines.map(({ memoryMb }, place) => [`machine-${place + 1}`, memoryMb]));
  }

  roomiest(): readonly [machine: string, leftMb: number] {
    return [...this.#leftMb].toSorted(([, one], [, other]) => other - one)[0] ?? ["", 0];
  }

  pin(id: string, memoryMb: number): boolean {
    const fitting = [...this.#leftMb].filter(
      ([name, leftMb]) => leftMb >= memoryMb && !this.placed.get(id)?.includes(name),
    );
    const [name, leftMb] = fitting.toSorted(([, one], [, other]) => other - one)[0] ?? [];
    if (name === undefined || leftMb === undefined) return false;
    this.#leftMb.set(name, leftMb - memoryMb);
    this.placed.set(id, [...(this.placed.get(id) ?? []), name]);
    this.pinned.getOrInsertComputed(name, () => new Set()).add(id);
    return true;
  }
}
