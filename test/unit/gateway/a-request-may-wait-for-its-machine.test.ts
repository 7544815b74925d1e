import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { waitingForMachinesMax } from "../../../services/gateway/routing/rank-machines.ts";
import { modelOf, presenceOf } from "./machines-of-a-fleet.ts";
import { fleetOfAGateway } from "./fleet-of-a-gateway.ts";
import type { Presence } from "#shared/protocol/presence.ts";

const timing = timingAt(1);
const waitMs = 5_000;

/** A gateway's ranking, whose one machine comes when the test says so. */
function rankingWith(options: { readonly waits?: number; readonly knows?: "known" | "unknown" } = {}) {
  const { waits = waitMs, knows = "known" } = options;
  const { clock, catalogues, ranking, hear } = fleetOfAGateway({ knows: async () => knows, waitMs: waits });
  const leaving = new AbortController();
  const ask = async (): Promise<string> => {
    const needs = { capability: "completion", tools: false, imageParam: undefined } as const;
    const wanted = { kind: "chat", modelId: "llama3", needs, machines: undefined, signal: leaving.signal } as const;
    try {
      return (await ranking.rank(wanted)).map(({ machine }) => machine).join();
    } catch (thrown) {
      return Fault.from(thrown).code;
    }
  };
  const come = async (): Promise<void> => {
    hear(presenceOf("attic"));
    await catalogues.settled();
  };
  const pass = async (ms: number): Promise<void> => {
    await clock.advanceAwaiting(ms);
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
  };
  return { ask, come, pass, leaving };
}

test("a request waits for a machine that is away, and goes to it as soon as it is back", async () => {
  const { ask, come, pass } = rankingWith();
  let taken: string | undefined;
  const asked = ask().then((outcome) => (taken = outcome));
  await pass(waitMs - 1_000);
  expect(taken).toBe(undefined);
  await come();
  await pass(timing.parkRetryMs);
  expect(await asked).toBe("attic");
});

test("a request whose machine does not come back in time is told so, and one that may not wait at once", async () => {
  const patient = rankingWith();
  const asked = patient.ask();
  await patient.pass(waitMs + timing.parkRetryMs);
  expect(await asked).toBe("agent_offline");
  expect(await rankingWith({ waits: 0 }).ask()).toBe("agent_offline");
});

test("no request waits for a model that was never there", async () => {
  expect(await rankingWith({ knows: "unknown" }).ask()).toBe("model_not_found");
});

test("a client that leaves while it waits holds no place", async () => {
  const { ask, pass, leaving } = rankingWith();
  const asked = ask();
  await pass(1_000);
  leaving.abort(new Fault("client_closed", { message: "The client left." }));
  expect(await asked).toBe("client_closed");
});

test(`no more than ${waitingForMachinesMax} wait at once: the next is told at once`, async () => {
  const { ask, pass } = rankingWith();
  const waiting = Array.from({ length: waitingForMachinesMax }, ask);
  await pass(0);
  expect(await ask()).toBe("agent_offline");
  await pass(waitMs + timing.parkRetryMs);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["agent_offline"]));
});

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
