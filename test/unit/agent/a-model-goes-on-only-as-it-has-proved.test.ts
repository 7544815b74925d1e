import { existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { Log } from "#shared/process/log.ts";
import { contentText } from "#shared/protocol/job-bodies.ts";
import type { Seam } from "#shared/protocol/model.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { ModelNotes } from "../../../services/agent/models/model-notes.ts";
import { proof } from "../../../services/agent/models/seam-prover.ts";
import { RuntimeWatch } from "../../../services/agent/models/watch-runtimes.ts";
import type { ChatRun, DescribedModel, EmitEvents, Runtime } from "../../../services/agent/runtimes/runtime.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";
import { until } from "../../harness/until.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { stubDescribed, StubRuntime } from "./stub-runtime.ts";

let folder: string;
beforeEach(() => void (folder = folderOfTest()));

const tokens = Array.from({ length: 40 }, (_, at) => ` word${at}`);

/** Returns the pieces of the rest of an answer, of which `begun` was given back. */
type Way = (begun: string) => readonly string[];

const goesOn: Way = (begun) => [tokens.join("").slice(begun.length)];

/** A runtime with one model, which goes on with an answer in the way of the test. */
class Continuer implements Runtime {
  readonly name = "continuer";
  readonly slots = 1;
  version: string | undefined = "1";
  way: Way = goesOn;
  chats = 0;
  thinks = false;
  /** Holds each chat until the test lets it go. */
  held: Promise<void> | undefined;
  model: DescribedModel = { id: "m", createdSeconds: 1, ownedBy: "me", capabilities: {}, digest: "continuer:m" };

  async catalogue(): Promise<readonly DescribedModel[]> {
    return [this.model];
  }

  async chat({ body, signal }: ChatRun, emit: EmitEvents): Promise<void> {
    this.chats += 1;
    if (this.held !== undefined) {
      const { promise: aborted, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => reject(signal.reason));
      await Promise.race([this.held, aborted]);
    }
    const last = body.messages.at(-1);
    const isBegun = last?.role === "assistant";
    if (this.thinks && !isBegun && body.reasoning_effort !== "none") await emit([{ kind: "reasoning", text: "Hm" }]);
    const pieces = isBegun ? this.way(contentText(last.content)) : tokens;
    for (const text of pieces) await emit([{ kind: "text", text }]);
    await emit([{ kind: "finish", reason: "stop" }]);
  }
}

/** The watch of an agent with this runtime. Its proofs are kept in the folder of the test. */
async function agentWith(runtime: Runtime, { idle = (): boolean => true } = {}) {
  const told: object[] = [];
  const log: Log = Object.create(null, {
    info: { value: (fields: object) => void told.push(fields) },
    debug: { value: () => undefined },
    warn: { value: () => undefined },
  });
  const clock = new TurnableClock();
  const timing = timingAt(1);
  const proofs = new ModelNotes({ file: join(folder, "proofs.json"), note: proof, log });
  const sources = [{ location: "here", look: async () => runtime }];
  const watch = new RuntimeWatch({ sources, firstSeen: () => 0, proofs, timing, clock, log });
  watch.heed({ workOn: () => ({ running: false, heardAtMs: -Infinity }), isIdle: idle });
  await watch.start();
  onTestFinished(() => watch.stop());
  const continues = (): readonly Seam[] | undefined => watch.offer?.byId.get("m")?.model.continues;
  const look = async (): Promise<void> => {
    await clock.advanceAwaiting(timing.cataloguePollMs);
    for (let turn = 0; turn < 200; turn += 1) await nextTurn();
  };
  return { watch, continues, look, told };
}

test("a model that goes on exactly is offered so, after four requests", async () => {
  const runtime = new Continuer();
  const { continues } = await agentWith(runtime);
  await until(() => continues() !== undefined, { what: "the proof" });
  expect(continues()).toEqual(["plain"]);
  expect(runtime.chats).toBe(4);
});

test.each<[string, Way]>([
  ["repeats the answer", () => tokens],
  ["drops a space", (begun) => [goesOn(begun).join("").trimStart()]],
  ["doubles the last word", (begun) => [begun.slice(begun.lastIndexOf(" ")), ...goesOn(begun)]],
  [
    "refuses the last message",
    () => {
      throw new Fault("unsupported_value", { message: "No.", param: "messages" });
    },
  ],
])("a model that %s goes on with nothing, and the log says so without its text", async (_, way) => {
  const runtime = new Continuer();
  runtime.way = way;
  const { continues, told } = await agentWith(runtime);
  await until(() => continues() !== undefined, { what: "the proof" });
  expect(continues()).toEqual([]);
  expect(told).toContainEqual(expect.objectContaining({ model: "m", differs: { plain: expect.any(String) } }));
  expect(JSON.stringify(told)).not.toContain("word");
});

test("a model that thinks proves each way of answering by itself", async () => {
  const runtime = new Continuer();
  runtime.thinks = true;
  runtime.model = { ...runtime.model, capabilities: { thinking: true } };
  const { continues } = await agentWith(runtime);
  await until(() => continues() !== undefined, { what: "the proof" });
  expect(continues()).toEqual(["plain", "thought"]);
});

test.each([{ digest: undefined }, { loaded: false }])("a model with %o is not asked", async (fields) => {
  const runtime = new Continuer();
  runtime.model = { ...runtime.model, ...fields };
  const { continues, look } = await agentWith(runtime);
  await look();
  expect([continues(), runtime.chats]).toEqual([undefined, 0]);
});

test("a model whose runtime fails is not judged, and not asked at once again", async () => {
  const runtime = new Continuer();
  runtime.way = () => {
    throw new Fault("upstream_error", { message: "The runtime failed." });
  };
  const { continues, look } = await agentWith(runtime);
  await until(() => runtime.chats === 2, { what: "a request for the rest" });
  await look();
  expect([continues(), runtime.chats]).toEqual([undefined, 2]);
});

test("a proof is kept over a restart, and made anew after an upgrade", async () => {
  const runtime = new Continuer();
  const before = await agentWith(runtime);
  await until(() => before.continues() !== undefined, { what: "the proof" });
  await until(() => existsSync(join(folder, "proofs.json")), { what: "the file" });
  const after = await agentWith(runtime);
  expect([after.continues(), runtime.chats]).toEqual([["plain"], 4]);
  runtime.version = "2";
  runtime.way = () => tokens;
  await after.look();
  expect([after.continues(), runtime.chats]).toEqual([[], 6]);
});

test("a proof is made anew at each start where the version is unknown", async () => {
  const runtime = new Continuer();
  runtime.version = undefined;
  for (const chats of [4, 8]) {
    const { continues } = await agentWith(runtime);
    await until(() => continues() !== undefined, { what: "the proof" });
    expect([continues(), runtime.chats]).toEqual([["plain"], chats]);
  }
  expect(existsSync(join(folder, "proofs.json"))).toBe(false);
});

test("a proof waits until the agent is idle", async () => {
  const runtime = new Continuer();
  let isIdle = false;
  const { continues, look } = await agentWith(runtime, { idle: () => isIdle });
  await look();
  expect(runtime.chats).toBe(0);
  isIdle = true;
  await look();
  expect(continues()).toEqual(["plain"]);
});

test("a job that comes during a proof ends it and begins at once, and the proof is no job of the machine", async () => {
  const runtime = new StubRuntime();
  runtime.offered = [{ ...stubDescribed("llama3"), digest: "stub:llama3" }];
  const log = { warn: () => undefined };
  const proofs = new ModelNotes({ file: join(folder, "proofs.json"), note: proof, log });
  const agent = await agentOnBroker({ runtime, proofs });
  await agent.settle();
  expect([runtime.chats.length, agent.jobs.runner.load.running]).toEqual([1, 0]);
  const asked = runtime.begun(0).run;
  expect(asked.signal.aborted).toBe(false);
  await agent.gateway.send();
  expect(asked.signal.aborted).toBe(true);
  expect(runtime.begun(1).run.body.messages).toEqual([{ role: "user", content: "Hello" }]);
});
