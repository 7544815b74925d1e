import type { Presence } from "#shared/protocol/presence.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import type { PlacedJob } from "../../../services/gateway/routing/placement-memory.ts";
import { Breakers } from "../../../services/gateway/routing/breakers.ts";
import { JobPlacements, type PlacementQuery } from "../../../services/gateway/routing/job-placements.ts";
import { blocksOfChat } from "../../../services/gateway/routing/prompt-blocks.ts";
import { Roster } from "../../../services/gateway/fleet/roster.ts";
import { estimatePrompt } from "../../../services/gateway/limits/token-estimates.ts";
import { modelOf, presenceOf } from "../../unit/gateway/machines-of-a-fleet.ts";
import type { Simulated, SimulatedRouter } from "./simulation.ts";

interface OpenRequest {
  readonly job: PlacedJob;
  readonly machine: number;
}

/**
 * The routing of so many gateways, each with its own memory. They tell each other their placements at every tick. The
 * machine `liar` reports no load, all of each prompt as cached, and many times the tokens of its answers.
 */
export function simulatedGateways(count: number, liar?: number): (simulated: Simulated) => SimulatedRouter {
  return ({ engines, random, now }) => {
    const model = modelOf("m", { context_window: 1_000_000 });
    const clock = { now };
    const names = engines.map((_, place) => `machine-${place}`);
    const gateways = Array.from({ length: count }, () => {
      const roster = new Roster(timingAt(1));
      const offering = names.toSorted();
      const catalogues = { of: () => [model], offering: () => offering, withheld: () => [] };
      const breakers = new Breakers(timingAt(1));
      const placements = new JobPlacements({ roster, catalogues, clock, breakers, random: () => random.next() });
      if (count > 1) placements.memory.onChange(() => {});
      return { roster, placements };
    });
    const open = new Map<number, OpenRequest>();
    let [lastPresenceMs, present] = [-Infinity, engines.map((_, place) => place)];
    const announce = (): void => {
      lastPresenceMs = now();
      for (const [place, { spec, running, waiting }] of engines.entries()) {
        const [runs, waits] = place === liar ? [0, 0] : [running.length, waiting.length];
        const load = { slots: spec.slots, queueMax: 1_000, running: runs, queued: waits };
        const state: Presence["state"] = present.includes(place) ? "ready" : "draining";
        const presence = presenceOf(names[place] ?? "", { ...load, state });
        for (const { roster, placements } of gateways) {
          roster.announced(presence, now());
          placements.loadReported(presence);
        }
      }
    };
    return {
      choose({ place, chat, request }, members) {
        if (members.length !== present.length) lastPresenceMs = -Infinity;
        present = [...members];
        if (lastPresenceMs === -Infinity) announce();
        const placements = gateways[place % count]?.placements;
        const body = chatBody.parse({ messages: chat.messages, ...(chat.tools && { tools: chat.tools }) });
        const promptTokens = estimatePrompt(body);
        const needs = { capability: "completion" as const, tools: false, imageParam: undefined, promptTokens };
        const wish: PlacementQuery = {
          kind: "chat",
          modelId: "m",
          machines: undefined,
          needs: { ...needs, prompt: blocksOfChat(body, 1) },
        };
        const choice = placements?.choose(wish);
        const chosen = choice?.outcome === "machines" ? choice.ranked[0] : undefined;
        if (placements === undefined || chosen === undefined) throw new Error("no machine takes a simulated request");
        const job = placements.placed(chosen, wish, { whole: false });
        job.accepted();
        const machine = names.indexOf(chosen.machine);
        open.set(request.id, { job, machine });
        return machine;
      },
      begun: (id) => open.get(id)?.job.answering(),
      ended({ request, tokens, cachedTokens }) {
        const { job, machine } = open.get(request.id) ?? {};
        const { promptTokens } = request;
        const usage =
          machine === liar
            ? { promptTokens, completionTokens: 1_000 * tokens, cachedTokens: promptTokens }
            : { promptTokens, completionTokens: tokens, cachedTokens };
        const timings = { queuedMs: 0, firstTokenMs: null, totalMs: 0 };
        const end = { finishReason: "stop" as const, usage, timings };
        job?.ended({ end, receivedBytes: 4 * tokens });
        open.delete(request.id);
      },
      tick() {
        if (now() - lastPresenceMs >= 1_000) announce();
        const news = gateways.map(({ placements: { memory } }) => ({
          loads: memory.loads(),
          prompts: memory.takePrompts(),
        }));
        for (const [place, { placements }] of gateways.entries()) {
          for (const [from, told] of news.entries()) if (from !== place) placements.memory.told(`${from}`, told);
        }
      },
    };
  };
}
