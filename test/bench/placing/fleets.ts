import type { SeededRandom } from "../../harness/seeded-random.ts";
import type { EngineSpec } from "../routing/engine.ts";

/** A model, with the memory that it takes and the time of its load. */
export interface SimulatedModel {
  readonly id: string;
  readonly memoryMb: number;
  readonly loadMs: number;
}

export interface SimulatedMachineSpec {
  readonly memoryMb: number;
  readonly engine: EngineSpec;
  /** The time of a load here, in those of the model. */
  readonly loadTimes?: number;
}

export interface Arrival {
  readonly atMs: number;
  readonly model: string;
  readonly promptTokens: number;
  readonly answerTokens: number;
}

/** A client that sends its next request when it has had the answer to the one before for `pauseMs`. */
export interface Client {
  readonly model: string;
  readonly requests: number;
  readonly pauseMs: number;
}

export interface SimulatedFleet {
  readonly name: string;
  readonly title: string;
  readonly machines: readonly SimulatedMachineSpec[];
  readonly models: readonly SimulatedModel[];
  readonly arrivals: (random: SeededRandom) => readonly Arrival[];
  readonly clients?: readonly Client[];
  /** A machine dies as soon as it loads a model after `afterMs`, and is back `awayMs` later. */
  readonly death?: { readonly machine: number; readonly afterMs: number; readonly awayMs: number };
}

const engine: EngineSpec = {
  slots: 4,
  cacheTokens: 0,
  prefillTokensPerSecond: 2_000,
  stepMs: 20,
  stepMsPerAnswer: 2,
};
const card: SimulatedMachineSpec = { memoryMb: 24_000, engine };

/** Nine models with loads of 3 to 60 s: the size alone does not tell the time, since disks and formats differ. */
const sizes: readonly (readonly [memoryMb: number, loadMs: number])[] = [
  [14_000, 14_000],
  [5_000, 5_000],
  [9_000, 30_000],
  [14_000, 20_000],
  [2_000, 3_000],
  [18_000, 60_000],
  [6_000, 6_000],
  [11_000, 10_000],
  [4_000, 8_000],
];
const models = sizes.map(([memoryMb, loadMs], place) => ({ id: `model-${place + 1}`, memoryMb, loadMs }));

const hour = 3_600_000;
const shiftEveryMs = 600_000;
const burstMs = 2_000;

/** Requests at random times. The first model is asked for most, by Zipf's law. With `shifts` another one is every ten minutes. */
function zipf(
  random: SeededRandom,
  { among, perHour, shifts = false }: { among: readonly SimulatedModel[]; perHour: number; shifts?: boolean },
): Arrival[] {
  const weights = among.map((_, place) => 1 / (place + 1));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const all: Arrival[] = [];
  for (let atMs = 0; ;) {
    atMs += (-Math.log(1 - random.next()) * hour) / perHour;
    if (atMs >= hour) return all;
    let drawn = random.next() * total;
    const rank = weights.findIndex((weight) => (drawn -= weight) < 0);
    const shift = shifts ? 2 * Math.floor(atMs / shiftEveryMs) : 0;
    all.push(request(random, atMs, among[(rank + shift) % among.length]?.id ?? ""));
  }
}

function request(random: SeededRandom, atMs: number, model: string): Arrival {
  return { atMs, model, promptTokens: random.between(100, 1_500), answerTokens: random.between(50, 300) };
}

const six = models.slice(0, 6);

export const fleets: readonly SimulatedFleet[] = [
  {
    name: "one-card",
    title: "one machine of 24 GB, six models of 62 GB, 120 requests an hour",
    machines: [card],
    models: six,
    arrivals: (random) => zipf(random, { among: six, perHour: 120 }),
  },
  {
    name: "four-cards",
    title: "four machines of 24 GB, nine models of 83 GB whose demand shifts every ten minutes, 1,200 requests an hour",
    machines: [card, card, card, card],
    models,
    arrivals: (random) => zipf(random, { among: models, perHour: 1_200, shifts: true }),
  },
  {
    name: "unequal",
    title: "a fast machine of 48 GB and a slow one of 12 GB, six models, 400 requests an hour",
    machines: [
      { memoryMb: 48_000, engine: { ...engine, prefillTokensPerSecond: 5_000, stepMs: 10, stepMsPerAnswer: 1 } },
      { ...card, memoryMb: 12_000, loadTimes: 1.5 },
    ],
    models: six,
    arrivals: (random) => zipf(random, { among: six, perHour: 400 }),
  },
  {
    name: "burst",
    title: "two machines of 24 GB, six models, and 40 requests in two seconds for one that is not in memory",
    machines: [card, card],
    models: six,
    arrivals: (random) => {
      const usual = zipf(random, { among: six.slice(0, 3), perHour: 300 });
      const cold = Array.from({ length: 40 }, () => request(random, hour / 2 + random.between(0, burstMs), "model-4"));
      return [...usual, ...cold].toSorted((one, other) => one.atMs - other.atMs);
    },
  },
  {
    name: "two-in-turn",
    title: "one machine of 24 GB, and two clients of two models of 14 GB that do not fit together",
    machines: [card],
    models: [models[0], models[3]].filter((model) => model !== undefined),
    arrivals: () => [],
    clients: ["model-1", "model-4"].map((model) => ({ model, requests: 60, pauseMs: 500 })),
  },
  {
    name: "a-death",
    title: "three machines of 24 GB, six models, 600 requests an hour; one dies while it loads, for two minutes",
    machines: [card, card, card],
    models: six,
    arrivals: (random) => zipf(random, { among: six, perHour: 600, shifts: true }),
    death: { machine: 0, afterMs: 700_000, awayMs: 120_000 },
  },
];
