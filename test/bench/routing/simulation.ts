import { SeededRandom } from "../../harness/seeded-random.ts";
import { Engine, type EngineRequest, type Progress } from "./engine.ts";
import { chatRequest, engineRequest } from "./engine-prompt.ts";
import { chooserOf, type Reference } from "./references.ts";
import type { Message, Session, Workload } from "./workloads.ts";

/** A chat on its way to an engine. */
export interface SimulatedRequest {
  /** Requests are numbered as they come, so that several gateways can take them in turn. */
  readonly place: number;
  readonly chat: { readonly model: string; readonly messages: readonly Message[]; readonly tools?: readonly object[] };
  readonly request: EngineRequest;
}

/** Chooses an engine for each request, and learns of each answer's first and last token. */
export interface SimulatedRouter {
  choose(asked: SimulatedRequest, members: readonly number[]): number;
  begun?(id: number): void;
  ended?(progress: Progress): void;
  /** Called every `tickMs` of the simulated time. */
  tick?(): void;
}

/** The engines of a run, and its clock. */
export interface Simulated {
  readonly engines: readonly Engine[];
  readonly random: SeededRandom;
  readonly now: () => number;
}

export interface SimulatedResult {
  /** The share of all prompt tokens that the engines had cached. */
  readonly hitShare: number;
  readonly firstMs: number;
  readonly totalP99Ms: number;
  /** The number of requests that each engine served. */
  readonly served: readonly number[];
}

export const tickMs = 25;

interface Event {
  readonly atMs: number;
  readonly run: () => void;
}

/** Runs a workload without servers and without waiting: all times are those of the engines. */
export function simulate(
  workload: Workload,
  { seed, router: make }: { readonly seed: number; readonly router: (simulated: Simulated) => SimulatedRouter },
): SimulatedResult {
  const engines = workload.engines.map((spec) => new Engine(spec));
  const changes = workload.changes ?? [];
  const joining = new Set(changes.filter(({ change }) => change === "joins").map(({ machine }) => machine));
  const members = new Set(engines.map((_, place) => place).filter((place) => !joining.has(place)));
  const events: Event[] = [];
  let nowMs = 0;
  const at = (atMs: number, run: () => void): void => {
    const place = events.findLastIndex((event) => event.atMs <= atMs);
    events.splice(place + 1, 0, { atMs, run });
  };
  const router = make({ engines, random: new SeededRandom(seed), now: () => nowMs });
  const busy = new Set<number>();
  const open = new Map<number, { readonly sentMs: number; readonly next: () => void }>();
  const firsts: number[] = [];
  const totals: number[] = [];
  const served = engines.map(() => 0);
  let [cachedTokens, promptTokens, requests, left] = [0, 0, 0, 0];

  const iterate = (place: number): void => {
    const durationMs = engines[place]?.begin();
    if (durationMs === undefined) busy.delete(place);
    else {
      busy.add(place);
      at(nowMs + durationMs, () => end(place));
    }
  };
  const end = (place: number): void => {
    for (const progress of engines[place]?.end() ?? []) {
      const { request, tokens } = progress;
      const { sentMs = 0, next } = open.get(request.id) ?? {};
      if (tokens === 1) {
        firsts.push(nowMs - sentMs);
        cachedTokens += progress.cachedTokens;
        promptTokens += request.promptTokens;
        router.begun?.(request.id);
      }
      if (tokens < request.answerTokens) continue;
      totals.push(nowMs - sentMs);
      served[place] = (served[place] ?? 0) + 1;
      open.delete(request.id);
      router.ended?.(progress);
      next?.();
    }
    iterate(place);
  };
  const run = ({ startMs, tools, turns }: Session): void => {
    const messages: Message[] = [];
    const ask = (turn: number, answer: string): void => {
      const { pauseMs, adds, calls } = turns[turn] ?? { pauseMs: 0, adds: [] };
      if (turn === turns.length) {
        left -= 1;
        return;
      }
      at(nowMs + pauseMs, () => {
        if (turn > 0) messages.push({ role: "assistant", content: answer, ...(calls && { tool_calls: calls }) });
        messages.push(...adds);
        const chat = { model: "m", messages: [...messages], ...(tools && { tools }) };
        const place = requests++;
        const { request, answer: text } = engineRequest(place, chatRequest.parse(chat));
        open.set(request.id, { sentMs: nowMs, next: () => ask(turn + 1, text) });
        const chosen = router.choose({ place, chat, request }, [...members]);
        engines[chosen]?.submit(request);
        if (!busy.has(chosen)) iterate(chosen);
      });
    };
    left += 1;
    at(startMs, () => ask(0, ""));
  };

  for (const session of workload.sessions(new SeededRandom(seed))) run(session);
  for (const { atMs, machine, change } of changes) {
    at(atMs, () => void (change === "joins" ? members.add(machine) : members.delete(machine)));
  }
  const tick = (): void => {
    router.tick?.();
    if (left > 0) at(nowMs + tickMs, tick);
  };
  tick();
  for (let event = events.shift(); event !== undefined; event = events.shift()) {
    nowMs = event.atMs;
    event.run();
  }
  return {
    hitShare: cachedTokens / promptTokens,
    firstMs: firsts.reduce((sum, each) => sum + each, 0) / firsts.length,
    totalP99Ms: totals.toSorted((one, other) => one - other)[Math.floor(totals.length * 0.99)] ?? 0,
    served,
  };
}

export function simulatedReference(reference: Reference): (simulated: Simulated) => SimulatedRouter {
  return ({ engines, random }) => {
    const choose = chooserOf(reference, random);
    return {
      choose: ({ request }, members) => {
        const present = members.flatMap((member) => engines[member] ?? []);
        const chosen = choose(request, present);
        return engines.findIndex((engine) => engine === chosen);
      },
    };
  };
}
