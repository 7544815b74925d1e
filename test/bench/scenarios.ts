import type { LatencyName } from "./report/cost.ts";
import { without } from "./report/own-variant.ts";
import { firstModel } from "./variants/first-answer.ts";
import { switchable } from "./variants/switched-off/features.ts";

/** How the load generator goes about a scenario. */
interface Pace {
  readonly connections: number;
  /** Over which the connections are opened. */
  readonly rampMs?: number;
  readonly warmMs: number;
  /** As many are answered before as well, or four times as long has passed. */
  readonly warmRequests?: number;
  readonly windowMs: number;
  /** Requests a second; as fast as answers come unless told. */
  readonly rate?: number;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** What costs are told by. */
  readonly unit: "request" | "chunk";
  readonly pace: Pace;
  /** The same in little time, where it is part of the quick bench. */
  readonly quick?: Partial<Pace>;
  /** Which time says how fast it was, where it is not that of the whole answer, or of a chunk. */
  readonly latency?: LatencyName;
  /** A chat that the far end answers with so many chunks, at this distance; without chunks the answer is whole. */
  readonly answer?: { readonly chunks?: number; readonly delayMs: number };
  /** Each connection asks once, and its stream lasts until after the window: there must be none that breaks. */
  readonly lasts?: boolean;
  readonly promptBytes?: number;
  /** What is asked instead of a chat. */
  readonly path?: string;
  /** Each request comes with a key of its own, which the gateway has not seen. */
  readonly freshKeys?: boolean;
  /** A stream of somebody else runs beside it, and how long that was held up is measured. */
  readonly neighbour?: boolean;
  /** The only variants that it is for; all of the ordinary ones unless told. */
  readonly only?: readonly string[];
  /** Those that it is for beside the ordinary ones. */
  readonly also?: readonly string[];
  /** Variants that it is not for, and why. */
  readonly not?: { readonly variants: readonly string[]; readonly reason: string };
}

const peersBreak = {
  variants: ["musistudio", "portkey"],
  reason: "these peers accept no 2,000 connections at this pace: the first hundreds that fail would be measured",
};
const bareBreaks = {
  variants: ["bare"],
  reason: "a bare pipeline puts a request into one message, and NATS takes none of this size",
};
/** How costs grow with streams is looked at beside the floor of the design. */
const grown = ["bare", "trunkline"];
/** With one feature switched off, to see what it costs. */
const partly = ["limits", ...switchable].map((feature) => `${without}${feature}`);
/** Machines that are simulated, for what a gateway has to bear of them. */
const crowds = ["crowd-1", "crowd-10", "crowd-100", "crowd-300", "crowd-1000"];

/**
 * In the order in which each start goes through them. The first of them is long in warming up, since what V8 makes of the
 * code goes on getting better for some ten thousand requests, however long a slow host takes for them; all after it find
 * the code warm.
 */
export const scenarios: readonly Scenario[] = [
  {
    name: "whole-32",
    title: "Small whole answers, 32 connections",
    unit: "request",
    pace: { connections: 32, warmMs: 8_000, warmRequests: 40_000, windowMs: 2_500 },
    quick: { warmMs: 1_800, warmRequests: 0, windowMs: 1_200 },
    answer: { delayMs: 0 },
    also: ["bare-2", "trunkline-2", "trunkline-3", "trunkline-4", "trunkline-keys", ...partly, ...crowds],
  },
  {
    name: "whole-1",
    title: "Small whole answers, one connection",
    unit: "request",
    pace: { connections: 1, warmMs: 500, windowMs: 2_000 },
    answer: { delayMs: 0 },
    also: partly,
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
    name: "paced-100",
    title: "100 streams at 20 chunks a second",
    unit: "chunk",
    pace: { connections: 100, rampMs: 500, warmMs: 1_000, windowMs: 2_000 },
    answer: { delayMs: 50 },
    lasts: true,
    only: grown,
  },
  {
    name: "paced-500",
    title: "500 streams at 20 chunks a second",
    unit: "chunk",
    pace: { connections: 500, rampMs: 1_000, warmMs: 1_000, windowMs: 3_000 },
    quick: { rampMs: 500, warmMs: 500, windowMs: 1_200 },
    answer: { delayMs: 50 },
    lasts: true,
    also: partly,
  },
  {
    name: "paced-1000",
    title: "1,000 streams at 20 chunks a second",
    unit: "chunk",
    pace: { connections: 1_000, rampMs: 1_500, warmMs: 1_000, windowMs: 2_000 },
    answer: { delayMs: 50 },
    lasts: true,
    only: grown,
  },
  {
    name: "paced-2000",
    title: "2,000 streams at 20 chunks a second",
    unit: "chunk",
    pace: { connections: 2_000, rampMs: 3_000, warmMs: 1_500, windowMs: 3_000 },
    answer: { delayMs: 50 },
    lasts: true,
    not: peersBreak,
  },
  {
    name: "paced-4000",
    title: "4,000 streams at 5 chunks a second",
    unit: "chunk",
    pace: { connections: 4_000, rampMs: 4_000, warmMs: 1_500, windowMs: 3_000 },
    answer: { delayMs: 200 },
    lasts: true,
    only: grown,
  },
  {
    name: "burst",
    title: "Streams of 100 chunks without a pause, 16 connections",
    unit: "chunk",
    pace: { connections: 16, warmMs: 500, windowMs: 2_000 },
    quick: { warmMs: 300, windowMs: 800 },
    answer: { chunks: 100, delayMs: 0 },
    also: partly,
  },
  ...[10, 100].map((kb): Scenario => ({
    name: `prompt-${kb}kb`,
    title: `A prompt of ${kb} KB, one connection`,
    unit: "request",
    pace: { connections: 1, warmMs: 300, windowMs: 1_500 },
    answer: { delayMs: 0 },
    promptBytes: kb * 1_000,
    only: ["plain-proxy", "trunkline"],
  })),
  {
    name: "prompt-1.2mb",
    title: "A prompt of 1.2 MB, one connection",
    unit: "request",
    pace: { connections: 1, warmMs: 1_500, windowMs: 3_000 },
    answer: { delayMs: 0 },
    promptBytes: 1_200_000,
    neighbour: true,
    not: bareBreaks,
  },
  {
    name: "body-10mb",
    title: "A prompt of 10 MB, which goes in parts, one connection",
    unit: "request",
    pace: { connections: 1, warmMs: 1_500, windowMs: 4_000 },
    answer: { delayMs: 0 },
    promptBytes: 10_000_000,
    neighbour: true,
    not: bareBreaks,
  },
  {
    name: "idle",
    title: "2,000 connections that ask nothing",
    unit: "request",
    pace: { connections: 2_000, rampMs: 1_000, warmMs: 500, windowMs: 1_000, rate: 0.001 },
    answer: { delayMs: 0 },
    not: peersBreak,
  },
  {
    name: "keys-unknown",
    title: "Small whole answers, 32 connections, each request with a key that the gateway has not seen",
    unit: "request",
    pace: { connections: 32, warmMs: 500, windowMs: 2_000 },
    answer: { delayMs: 0 },
    freshKeys: true,
    only: ["trunkline-keys"],
  },
  {
    name: "overload-served",
    title: "300 requests a second at a machine that takes 400",
    unit: "request",
    pace: { connections: 64, warmMs: 2_000, windowMs: 4_000, rate: 300 },
    answer: { delayMs: 20 },
    only: ["trunkline-small"],
  },
  {
    name: "overload-refused",
    title: "1,200 requests a second at a machine that takes 400",
    unit: "request",
    pace: { connections: 128, warmMs: 1_000, windowMs: 4_000, rate: 1_200 },
    answer: { delayMs: 20 },
    only: ["trunkline-small"],
  },
  {
    name: "unasked",
    title: "A site that nobody asks anything",
    unit: "request",
    pace: { connections: 1, warmMs: 500, windowMs: 4_000, rate: 0.001 },
    answer: { delayMs: 0 },
    only: crowds,
  },
  {
    name: "models-50",
    title: "Listing the models of 50 machines, 8 connections",
    unit: "request",
    pace: { connections: 8, warmMs: 1_000, windowMs: 2_000 },
    path: "/v1/models",
    only: ["crowd-50"],
  },
];

const ordinaryVariants: readonly string[] = [
  "direct",
  "nginx",
  "plain-proxy",
  "bare",
  "musistudio",
  "portkey",
  "trunkline",
];

/** Whether a scenario is for a variant. */
export function isFor({ only, also, not }: Scenario, variant: string): boolean {
  if (not?.variants.includes(variant)) return false;
  return (only ?? [...ordinaryVariants, ...(also ?? [])]).includes(variant);
}

/** Far more than what was asked last takes to its end: one that is late is no broken stream, one that never ends is. */
const finishSpareMs = 20_000;

/** How the load generator is told, once it is clear whether there is little time. */
export interface LoadPlan {
  readonly connections: number;
  readonly rampMs: number;
  readonly warmMs: number;
  readonly warmRequests: number;
  readonly windowMs: number;
  readonly finishMs: number;
  readonly rate: number | undefined;
  readonly once: boolean;
  /** How many chunks a stream has; nothing where answers are whole. */
  readonly chunks: number | undefined;
  readonly offeredChunks: number | undefined;
  readonly model: string;
}

export function planOf(scenario: Scenario, { quick }: { readonly quick: boolean }): LoadPlan {
  const pace = quick ? { ...scenario.pace, ...scenario.quick } : scenario.pace;
  const { connections, rampMs = 0, warmMs, warmRequests = 0, windowMs, rate } = pace;
  const { delayMs = 0 } = scenario.answer ?? {};
  const lastingChunks = Math.ceil((rampMs + warmMs + windowMs + 1_000) / Math.max(1, delayMs));
  const chunks = scenario.lasts === true ? lastingChunks : scenario.answer?.chunks;
  return {
    connections,
    rampMs,
    warmMs,
    warmRequests,
    windowMs,
    finishMs: scenario.lasts === true ? rampMs + finishSpareMs : 0,
    rate,
    once: scenario.lasts === true,
    chunks,
    offeredChunks: scenario.lasts === true ? (connections * windowMs) / delayMs : undefined,
    model: `m-${chunks ?? 0}-${delayMs}`,
  };
}

/** What runs beside a scenario that asks for a neighbour: one stream with a chunk every 5 ms. */
export const neighbourModel = "m-4000-5";

/** The models that the far end lists. */
export function modelsOf(some: readonly Scenario[], { quick }: { readonly quick: boolean }): readonly string[] {
  return [...new Set([...some.map((scenario) => planOf(scenario, { quick }).model), neighbourModel, firstModel])];
}

/** The request's body, or nothing where it is a GET. */
export function bodyOf(scenario: Scenario, plan: LoadPlan): string | undefined {
  if (scenario.path !== undefined) return undefined;
  const content = scenario.promptBytes === undefined ? "What is the capital of France?" : prose(scenario.promptBytes);
  const stream = plan.chunks === undefined ? {} : { stream: true };
  return JSON.stringify({ model: plan.model, messages: [{ role: "user", content }], ...stream });
}

/** Text as people send it: words of different lengths, lines, here and there a quotation mark or a letter beyond ASCII. */
function prose(bytes: number): string {
  const words = [
    "the",
    "machine",
    "answers",
    "“later”",
    "when",
    "its",
    "own",
    "work",
    "is",
    'done:\n"yes"',
    "über",
    "and",
  ];
  const pieces: string[] = [];
  let length = 0;
  for (let place = 0; length < bytes; place += 1) {
    const word = `${words[(place * 7 + (place >> 4)) % words.length] ?? ""}${place % 97 === 0 ? place : ""} `;
    pieces.push(word);
    length += word.length;
  }
  return pieces.join("").slice(0, bytes);
}
