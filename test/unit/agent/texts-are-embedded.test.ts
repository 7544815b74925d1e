import { expect, test } from "vitest";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { EmbedRun, Embeddings } from "../../../services/agent/runtimes/runtime.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { StubRuntime } from "./stub-runtime.ts";
import { eventsIn } from "../../harness/answer-payload.ts";

/** A runtime that turns each text into its length. */
class EmbeddingRuntime extends StubRuntime {
  readonly runs: EmbedRun[] = [];

  async embed(run: EmbedRun): Promise<Embeddings> {
    this.runs.push(run);
    const { input } = run.body;
    return { vectors: input.map((text) => [text.length]), promptTokens: 7 };
  }
}

const ask = { kind: "embed", body: encodeJson({ input: ["a", "bcd"] }) } as const;

function embeds(runtime: StubRuntime): StubRuntime {
  runtime.offered = [{ id: "llama3", ownedBy: "stub", capabilities: { embedding: true } }];
  return runtime;
}

test("a job that embeds ends with a vector for each text and with the usage", async () => {
  const { gateway, settle } = await agentOnBroker({ runtime: embeds(new EmbeddingRuntime()) });
  const id = await gateway.send(ask);
  await settle();
  const said = gateway.frames(id).filter(({ kind }) => kind === "data");
  expect(said.flatMap(({ payload }) => eventsIn(Buffer.from(String(payload))))).toMatchObject([
    { kind: "embedding", index: 0, vector: [1] },
    { kind: "embedding", index: 1, vector: [3] },
    { kind: "finish" },
    { kind: "usage", promptTokens: 7 },
  ]);
  expect(gateway.lastOf(id)).toMatchObject({ kind: "end", payload: { usage: { promptTokens: 7 } } });
});

test.each([
  ["a model that does not embed", new EmbeddingRuntime()],
  ["a runtime that cannot, whatever its model is said to do", embeds(new StubRuntime())],
])("a job that embeds on %s is refused with the parameter", async (_, runtime) => {
  const { gateway, settle } = await agentOnBroker({ runtime });
  const id = await gateway.send(ask);
  await settle();
  expect(gateway.lastOf(id)).toMatchObject({
    kind: "fault",
    payload: { code: "unsupported_value", param: "model" },
  });
});
