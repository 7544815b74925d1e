import type { SeededRandom } from "../../harness/seeded-random.ts";
import type { EngineSpec } from "./engine.ts";
import { answerWish } from "./engine-prompt.ts";

export interface Message {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly object[];
}

export interface Turn {
  /** Time between the answer before and this request. */
  readonly pauseMs: number;
  /** Messages that this turn adds to the conversation. */
  readonly adds: readonly Message[];
  /** Tool calls that the answer before is sent back with. */
  readonly calls?: readonly object[];
}

/** A client: requests one after the other, each with the whole conversation before it. */
export interface Session {
  readonly startMs: number;
  readonly tools?: readonly object[];
  readonly turns: readonly Turn[];
}

/** A machine that joins is away at first. One that leaves finishes its requests. */
export interface Change {
  readonly atMs: number;
  readonly machine: number;
  readonly change: "joins" | "leaves";
}

export interface Workload {
  readonly name: string;
  readonly title: string;
  readonly engines: readonly EngineSpec[];
  readonly changes?: readonly Change[];
  readonly sessions: (random: SeededRandom) => readonly Session[];
}

const fast: EngineSpec = {
  slots: 8,
  cacheTokens: 48_000,
  prefillTokensPerSecond: 8_000,
  stepMs: 10,
  stepMsPerAnswer: 0.5,
};
const slow: EngineSpec = { ...fast, prefillTokensPerSecond: 4_000, stepMs: 20, stepMsPerAnswer: 1 };

/** Six machines, two of them half as fast. */
function fleet(given: Partial<EngineSpec> = {}): readonly EngineSpec[] {
  return [fast, fast, slow, fast, fast, slow].map((spec) => ({ ...spec, ...given }));
}

const spanMs = 10_000;

export const workloads: readonly Workload[] = [
  { name: "chats", title: "60 chats of 8 turns", engines: fleet(), sessions: (random) => chats(random, 60) },
  {
    name: "agents",
    title: "45 agents of 4 prompts of 6,000 tokens, caches of 16,000 tokens",
    engines: fleet({ cacheTokens: 16_000 }),
    sessions: agents,
  },
  {
    name: "documents",
    title: "300 questions about 20 documents, in one message with the document",
    engines: fleet({ cacheTokens: 16_000 }),
    sessions: documents,
  },
  { name: "mixed", title: "mixed lengths without reuse, 8 slots", engines: fleet(), sessions: mixed },
  {
    name: "mixed-256",
    title: "the same with 256 slots, the default of vLLM",
    engines: fleet({ slots: 256 }),
    sessions: mixed,
  },
  { name: "tools", title: "30 tool loops of 6 steps", engines: fleet(), sessions: toolLoops },
  { name: "burst", title: "144 requests at once, three times what 48 slots run", engines: fleet(), sessions: burst },
  {
    name: "joins",
    title: "50 chats, a fast machine joins after a third of the time",
    engines: fleet(),
    changes: [{ atMs: spanMs / 3, machine: 4, change: "joins" }],
    sessions: (random) => chats(random, 50),
  },
  {
    name: "leaves",
    title: "50 chats, a fast machine leaves after a third of the time",
    engines: fleet(),
    changes: [{ atMs: spanMs / 3, machine: 4, change: "leaves" }],
    sessions: (random) => chats(random, 50),
  },
];

/** Returns a text of so many tokens that no other text of the run begins with. */
export function filler(random: SeededRandom, tokens: number): string {
  const word = (): string => `${random.between(0, 46_655).toString(36).padStart(3, "0")} `;
  return Array.from({ length: tokens }, word).join("");
}

function asks(random: SeededRandom, text: string, [least, most]: Range): Message {
  return { role: "user", content: `${text}${answerWish(random.between(least, most))}` };
}

type Range = readonly [least: number, most: number];

/** Builds so many sessions, whose starts are spread over the time by chance. */
function spread(random: SeededRandom, count: number, turnsOf: (place: number) => readonly Turn[]): readonly Session[] {
  return Array.from({ length: count }, (_, place) => ({ startMs: random.between(0, spanMs), turns: turnsOf(place) }));
}

function chats(random: SeededRandom, count: number): readonly Session[] {
  return spread(random, count, () => {
    const system: Message = { role: "system", content: filler(random, 150) };
    return Array.from({ length: 8 }, (_, turn) => ({
      pauseMs: turn === 0 ? 0 : random.between(200, 1_000),
      adds: [...(turn === 0 ? [system] : []), asks(random, filler(random, random.between(40, 300)), [20, 80])],
    }));
  });
}

function agents(random: SeededRandom): readonly Session[] {
  const prompts = Array.from({ length: 4 }, (): Message => ({ role: "system", content: filler(random, 6_000) }));
  return spread(random, 45, (place) => {
    const system = prompts.slice(place % prompts.length, (place % prompts.length) + 1);
    return Array.from({ length: 3 }, (_, turn) => ({
      pauseMs: turn === 0 ? 0 : random.between(100, 500),
      adds: [...(turn === 0 ? system : []), asks(random, filler(random, random.between(150, 500)), [20, 60])],
    }));
  });
}

function documents(random: SeededRandom): readonly Session[] {
  const texts = Array.from({ length: 20 }, () => filler(random, 2_000));
  return spread(random, 300, () => {
    const text = texts[random.between(0, texts.length - 1)] ?? "";
    return [{ pauseMs: 0, adds: [asks(random, `${text}\n\n${filler(random, random.between(20, 60))}`, [20, 60])] }];
  });
}

function mixed(random: SeededRandom): readonly Session[] {
  return spread(random, 130, () => {
    const tokens = Math.round(50 * 80 ** random.next());
    return [{ pauseMs: 0, adds: [asks(random, filler(random, tokens), [10, 160])] }];
  });
}

function toolLoops(random: SeededRandom): readonly Session[] {
  const parameters = { type: "object", properties: { path: { type: "string", description: filler(random, 60) } } };
  const names = ["read_file", "list_files", "search", "edit_file", "run", "fetch"];
  const tools = names.map((name) => ({
    type: "function",
    function: { name, description: filler(random, 150), parameters },
  }));
  const system: Message = { role: "system", content: filler(random, 500) };
  const steps = (): readonly Turn[] => [
    { pauseMs: 0, adds: [system, asks(random, filler(random, random.between(50, 200)), [20, 60])] },
    ...Array.from({ length: 5 }, (_, step) => toolResult(random, `call_${step}`)),
  ];
  return spread(random, 30, steps).map((session) => ({ ...session, tools }));
}

function toolResult(random: SeededRandom, id: string): Turn {
  const called = { name: "read_file", arguments: JSON.stringify({ path: filler(random, 4) }) };
  const content = `${filler(random, random.between(200, 1_200))}${answerWish(random.between(20, 60))}`;
  return {
    pauseMs: random.between(50, 300),
    calls: [{ id, type: "function", function: called }],
    adds: [{ role: "tool", tool_call_id: id, content }],
  };
}

/** A calm load all the time, and in its midst a burst within half a second. */
function burst(random: SeededRandom): readonly Session[] {
  const turns = (): readonly Turn[] => [
    { pauseMs: 0, adds: [asks(random, filler(random, random.between(100, 600)), [30, 90])] },
  ];
  const calm = spread(random, 45, turns);
  const crowd = spread(random, 144, turns).map((session) => ({
    ...session,
    startMs: spanMs / 3 + (session.startMs / spanMs) * 500,
  }));
  return [...calm, ...crowd];
}
