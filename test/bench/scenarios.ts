import { firstModel } from "./variants/variant.ts";
import type { Unit } from "./measurement.ts";

/** The pace of the load generator in a scenario. */
interface Pace {
  readonly connections: number;
  /** Time over which the connections are opened. */
  readonly rampMs?: number;
  readonly warmMs: number;
  /** Requests that are answered before the window begins, for at most four times `warmMs`. */
  readonly warmRequests?: number;
  readonly windowMs: number;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** Costs are told per request or per chunk. */
  readonly unit: Unit;
  readonly pace: Pace;
  /** A shorter pace; only scenarios that have one belong to the quick bench. */
  readonly quick?: Partial<Pace>;
  /** The latency to report, unless `total` of requests and `oneWay` of chunks. */
  readonly latency?: "firstByte";
  /** The far end answers with so many chunks at this distance; without `chunks` the answer is whole. */
  readonly answer: { readonly chunks?: number; readonly delayMs: number };
  /** Each connection asks once, and its stream lasts until after the window. */
  readonly lasts?: boolean;
  readonly promptBytes?: number;
}

/**
 * In the order in which each start runs them. The first warms up for long, since V8 improves the code for some ten
 * thousand requests; the others find the code warm.
 */
export const scenarios: readonly Scenario[] = [
  {
    name: "whole-32",
    title: "Small whole answers, 32 connections",
    unit: "request",
    pace: { connections: 32, warmMs: 8_000, warmRequests: 40_000, windowMs: 2_500 },
    quick: { warmMs: 3_000, warmRequests: 0, windowMs: 1_200 },
    answer: { delayMs: 0 },
  },
  {
    name: "whole-1",
    title: "Small whole answers, one connection",
    unit: "request",
    pace: { connections: 1, warmMs: 500, windowMs: 2_000 },
    quick: { warmMs: 1_500, windowMs: 1_000 },
    answer: { delayMs: 0 },
  },
  {
    name: "first-byte",
    title: "First byte of a stream of 20 chunks, one connection",
    unit: "request",
    pace: { connections: 1, warmMs: 500, windowMs: 1_500 },
    answer: { chunks: 20, delayMs: 0 },
    latency: "firstByte",
  },
  {
    name: "lonely",
    title: "One stream alone, a chunk each 10 ms",
    unit: "chunk",
    pace: { connections: 1, warmMs: 300, windowMs: 2_000 },
    answer: { chunks: 100, delayMs: 10 },
  },
  {
    // More streams than a machine has, and few enough for the slowest host of CI.
    name: "paced-100",
    title: "100 streams at 20 chunks a second",
    unit: "chunk",
    pace: { connections: 100, rampMs: 300, warmMs: 1_500, windowMs: 2_500 },
    quick: {},
    answer: { delayMs: 50 },
    lasts: true,
  },
  {
    name: "paced-500",
    title: "500 streams at 20 chunks a second",
    unit: "chunk",
    pace: { connections: 500, rampMs: 1_000, warmMs: 1_000, windowMs: 3_000 },
    answer: { delayMs: 50 },
    lasts: true,
  },
  {
    name: "paced-2000",
    title: "2,000 streams at 20 chunks a second",
    unit: "chunk",
    pace: { connections: 2_000, rampMs: 3_000, warmMs: 1_500, windowMs: 3_000 },
    answer: { delayMs: 50 },
    lasts: true,
  },
  {
    name: "burst",
    title: "Streams of 100 chunks without a pause, 16 connections",
    unit: "chunk",
    pace: { connections: 16, warmMs: 500, windowMs: 2_000 },
    quick: { warmMs: 1_000, windowMs: 1_500 },
    answer: { chunks: 100, delayMs: 0 },
  },
  {
    name: "prompt-100kb",
    title: "Prompts of 100 KB, 8 connections",
    unit: "request",
    pace: { connections: 8, warmMs: 4_000, windowMs: 3_000 },
    answer: { delayMs: 0 },
    promptBytes: 100_000,
  },
];

/** Time after the window in which lasting streams have to end. */
const finishSpareMs = 20_000;

/** The options of the load generator for one scenario. */
export interface LoadPlan extends Required<Pace> {
  readonly finishMs: number;
  readonly once: boolean;
  /** Chunks of each stream; undefined for whole answers. */
  readonly chunks: number | undefined;
  readonly offeredChunks: number | undefined;
  readonly model: string;
}

export function planOf(scenario: Scenario, { quick }: { readonly quick: boolean }): LoadPlan {
  const pace = { rampMs: 0, warmRequests: 0, ...scenario.pace, ...(quick ? scenario.quick : {}) };
  const { connections, rampMs, warmMs, windowMs } = pace;
  const { delayMs } = scenario.answer;
  const lasts = scenario.lasts === true;
  const lastingChunks = Math.ceil((rampMs + warmMs + windowMs + 1_000) / Math.max(1, delayMs));
  const chunks = lasts ? lastingChunks : scenario.answer.chunks;
  return {
    ...pace,
    finishMs: lasts ? rampMs + finishSpareMs : 0,
    once: lasts,
    chunks,
    offeredChunks: lasts ? (connections * windowMs) / delayMs : undefined,
    model: `m-${chunks ?? 0}-${delayMs}`,
  };
}

/** The models that the far end lists. */
export function modelsOf(some: readonly Scenario[], { quick }: { readonly quick: boolean }): readonly string[] {
  return [...new Set([...some.map((scenario) => planOf(scenario, { quick }).model), firstModel])];
}

/** The request's body. */
export function bodyOf(scenario: Scenario, plan: LoadPlan, path: string | undefined): string {
  const content = scenario.promptBytes === undefined ? "What is the capital of France?" : prose(scenario.promptBytes);
  const stream = plan.chunks === undefined ? {} : { stream: true };
  const longest = path === "/v1/messages" ? { max_tokens: 8_192 } : {};
  return JSON.stringify({ model: plan.model, messages: [{ role: "user", content }], ...longest, ...stream });
}

/** Text as people send it: words of different lengths, lines, some quotation marks and letters beyond ASCII. */
function prose(bytes: number): string {
  const words = 'the machine answers “later” when its own work is done:\n"yes" über and'.split(" ");
  let text = "";
  for (let place = 0; text.length < bytes; place += 1) {
    text += `${words[(place * 7 + (place >> 4)) % words.length] ?? ""}${place % 97 === 0 ? place : ""} `;
  }
  return text.slice(0, bytes);
}
