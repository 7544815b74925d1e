import { type Engine, type EngineRequest, prefillMs, stepMs } from "./engine.ts";
import type { SeededRandom } from "../../harness/seeded-random.ts";

/** A way to choose an engine that others are compared with. It runs where the engines are and costs no time. */
export type Choose = (request: EngineRequest, engines: readonly Engine[]) => Engine | undefined;

export const references = {
  "round-robin": "each machine in its turn",
  "two-choices": "the less occupied of two machines drawn at random",
  oracle: "the least cost by each engine's real cache and load",
} as const;
export type Reference = keyof typeof references;

export function chooserOf(reference: Reference, random: SeededRandom): Choose {
  if (reference === "round-robin") return roundRobin();
  return reference === "two-choices"
    ? (_, engines) => ofTwo(engines, random)
    : (...asked) => byOracle(...asked, random);
}

function roundRobin(): Choose {
  let turn = 0;
  return (_, engines) => engines[turn++ % engines.length];
}

function ofTwo(engines: readonly Engine[], random: SeededRandom): Engine | undefined {
  const rest = [...engines];
  const [one] = rest.splice(random.between(0, rest.length - 1), 1);
  const [other = one] = rest.splice(random.between(0, rest.length - 1), 1);
  return one !== undefined && other !== undefined && occupancy(other) < occupancy(one) ? other : one;
}

function occupancy({ running, waiting, spec }: Engine): number {
  return (running.length + waiting.length) / spec.slots;
}

function byOracle(request: EngineRequest, engines: readonly Engine[], random: SeededRandom): Engine | undefined {
  const costs = engines.map((engine) => ({ engine, cost: costOf(engine, request), draw: random.next() }));
  return costs.toSorted((one, other) => one.cost - other.cost || one.draw - other.draw)[0]?.engine;
}

/** The weight of decoding against time to the first token. */
const decodingWeighs = 0.3;

/** Returns the milliseconds that a request costs on an engine: its own, and those of the requests that are there. */
export function costOf(engine: Engine, request: EngineRequest): number {
  const { spec, cache, running, waiting } = engine;
  const uncached = (asked: EngineRequest): number =>
    asked.promptTokens - Math.min(cache.cachedTokens(asked.promptBlocks), asked.promptTokens - 1);
  const answers = Math.min(spec.slots, running.length + 1);
  const tokenMs = stepMs(spec, answers);
  const lefts = running.map(({ request: asked, tokens }) => asked.answerTokens - tokens);
  const backlog =
    running.reduce((sum, { request: asked, prefillLeft, cachedTokens }) => {
      return sum + (prefillLeft > 0 && cachedTokens < 0 ? uncached(asked) : prefillLeft);
    }, 0) + waiting.reduce((sum, asked) => sum + uncached(asked), 0);
  const own = uncached(request);
  const decode = request.answerTokens * tokenMs;
  const slowed = lefts.reduce((sum, left) => sum + Math.min(left, request.answerTokens), 0) * spec.stepMsPerAnswer;
  const halted = lefts.length * prefillMs(spec, own);
  return (
    slotWaitMs(engine, { lefts, tokenMs }) +
    prefillMs(spec, backlog + own) +
    decodingWeighs * (decode + slowed + halted)
  );
}

/** Returns the time until a slot is free for one more request, as if all that wait had answers of the mean length. */
function slotWaitMs(
  { spec, running, waiting }: Engine,
  { lefts, tokenMs }: { readonly lefts: readonly number[]; readonly tokenMs: number },
): number {
  if (running.length + waiting.length < spec.slots) return 0;
  const ends = lefts.toSorted((one, other) => one - other);
  for (const { answerTokens } of waiting) {
    ends.push((ends.shift() ?? 0) + answerTokens);
    ends.sort((one, other) => one - other);
  }
  return (ends[0] ?? 0) * tokenMs;
}
