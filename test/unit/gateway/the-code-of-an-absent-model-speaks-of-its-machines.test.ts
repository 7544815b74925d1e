import { expect, test } from "vitest";
import type { Presence } from "#shared/protocol/presence.ts";
import { modelOf, presenceOf } from "./machines-of-a-fleet.ts";
import { fleetOfAGateway } from "./fleet-of-a-gateway.ts";

interface Seen extends Partial<Presence> {
  /** True if the machine offered `llama3` lately. */
  readonly had?: true;
}

const here: Seen = {};
const draining: Seen = { state: "draining" };
const noServer: Seen = { runtime: null, state: "waiting" };
const away: Seen = { state: "gone" };

/** The code of a request for `llama3`, with these machines. */
async function codeWith(machines: Readonly<Record<string, Seen>>): Promise<string> {
  const having = Object.keys(machines).filter((name) => machines[name]?.had);
  const { roster, catalogues, ranking, clock } = fleetOfAGateway({
    ask: async ({ machine }) => [modelOf(having.includes(machine) ? "llama3" : "qwen3")],
    knows: async (_, { machines: named = having }) =>
      named.some((name) => having.includes(name)) ? "known" : "unknown",
  });
  for (const [name, { had: _, ...seen }] of Object.entries(machines)) {
    catalogues.follow(presenceOf(name));
    await catalogues.settled();
    roster.announced(presenceOf(name, seen), clock.now());
  }
  return (await ranking.absence({ modelId: "llama3", machines: undefined })).code;
}

const had = (seen: Seen): Seen => ({ ...seen, had: true });

test.each([
  ["agent_offline", "its machine is away", { attic: had(away) }],
  ["agent_offline", "its machine is away and another one has no model server", { attic: had(away), desk: noServer }],
  ["agent_offline", "its machine is away and another one is draining", { attic: had(away), desk: draining }],
  ["runtime_offline", "its machine has no model server", { attic: had(noServer) }],
  ["runtime_offline", "its machine has no model server and others serve", { attic: had(noServer), desk: here }],
  [
    "runtime_offline",
    "one of its machines is away and one has no model server",
    { attic: had(away), desk: had(noServer) },
  ],
  ["shutting_down", "its machine is draining", { attic: had(draining), desk: noServer }],
  ["model_not_found", "no machine ever had it", { attic: here, desk: noServer }],
])("a model is told as %s when %s", async (code, _, machines) => {
  expect(await codeWith(machines)).toBe(code);
});
