import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelSettingsFile } from "../../services/agent/models/model-set.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { FakeLlamaRouter } from "../harness/fake-llama-router.ts";
import { FakeLlamaServer } from "../harness/fake-llama-server.ts";
import { FakeLmStudio } from "../harness/fake-lm-studio.ts";
import { FakeMlxLm } from "../harness/fake-mlx-lm.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import type { FakeOpenAiServer } from "../harness/fake-openai-server.ts";
import { FakeOtherServer } from "../harness/fake-other-server.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { answerAsOllama, answerAsOpenAi } from "./knowing-model.ts";

/** A whole Trunkline in front of one kind of runtime, as an SDK is pointed at it. */
export interface Fronted extends AsyncDisposable {
  readonly endpoint: Endpoint;
  /** A model that thinks and calls tools. */
  readonly chatModel: string;
  readonly embedModel: string;
}

/** A kind of runtime that every SDK is run through. */
interface RuntimeKind {
  readonly name: string;
  readonly embeds: boolean;
  /** Whether it tells how likely each token was. */
  readonly knowsLogprobs: boolean;
  /** The weights of its chat model as Ollama's clients see them; absent for a server that does not report them. */
  readonly details?: object;
  readonly start: () => Promise<Fronted>;
}

const chats = { completion: true, tools: true, thinking: true };
const embeds = { completion: false, embedding: true };
/** An agent finds out by itself what it fronts. */
const auto = { TRUNKLINE_RUNTIME: "auto" };

export const frontedRuntimes: readonly RuntimeKind[] = [
  { name: "the demonstration", embeds: true, knowsLogprobs: false, start: frontedDemonstration },
  {
    name: "Ollama",
    details: { family: "llama", parameter_size: "3.2B", quantization_level: "Q4_K_M" },
    embeds: true,
    knowsLogprobs: true,
    start: () =>
      inFrontOf({ chatModel: "qwen3:8b", embedModel: "nomic-embed-text" }, async ({ chatModel, embedModel }) => {
        const able = { name: chatModel, capabilities: ["completion", "tools", "thinking"] };
        const vectors = { name: `${embedModel}:latest`, capabilities: ["embedding"] };
        const ollama = await FakeOllama.start({ models: [able, vectors] });
        ollama.onChat = answerAsOllama;
        return [ollama];
      }),
  },
  {
    name: "vLLM",
    embeds: true,
    knowsLogprobs: true,
    start: () =>
      inFrontOf({ chatModel: "Qwen/Qwen3-8B", embedModel: "BAAI/bge-m3" }, ({ chatModel, embedModel }) =>
        Promise.all([
          FakeVllm.start({ models: [{ id: chatModel }] }),
          FakeVllm.start({ models: [{ id: embedModel }], task: "embed" }),
        ]),
      ),
  },
  {
    name: "llama-server",
    details: { family: "", parameter_size: "8.2B", quantization_level: "Q4_K_M" },
    embeds: true,
    knowsLogprobs: true,
    start: () =>
      inFrontOf({ chatModel: "qwen3-8b", embedModel: "bge-m3" }, ({ chatModel, embedModel }) =>
        Promise.all([
          FakeLlamaServer.start({ model: { name: chatModel } }),
          FakeLlamaServer.start({ model: { name: embedModel, embeddings: true } }),
        ]),
      ),
  },
  {
    name: "llama-server as a router",
    embeds: true,
    knowsLogprobs: true,
    start: () =>
      inFrontOf(
        { chatModel: "qwen3-8b", embedModel: "bge-m3" },
        async ({ chatModel, embedModel }) => [
          await FakeLlamaRouter.start({
            models: [
              { name: chatModel, status: "loaded" },
              { name: embedModel, status: "loaded", embeddings: true },
            ],
          }),
        ],
        { "bge-m3": { capabilities: embeds } },
      ),
  },
  {
    name: "LM Studio",
    details: { family: "qwen3", parameter_size: "8B", quantization_level: "Q4_K_M" },
    embeds: true,
    knowsLogprobs: false,
    start: () =>
      inFrontOf({ chatModel: "qwen/qwen3-8b", embedModel: "nomic/nomic-embed" }, async ({ chatModel, embedModel }) => [
        await FakeLmStudio.start({
          models: [
            { key: chatModel, loadedTokens: 8_192, tools: true, thinks: true },
            { key: embedModel, type: "embedding" },
          ],
        }),
      ]),
  },
  {
    name: "mlx-lm",
    embeds: false,
    knowsLogprobs: false,
    start: () =>
      inFrontOf(
        { chatModel: "mlx-community/Qwen3-8B-4bit", embedModel: "mlx-community/none" },
        async ({ chatModel }) => [await FakeMlxLm.start({ models: [chatModel] })],
        { "mlx-community/*": { capabilities: chats } },
      ),
  },
  {
    name: "any other server",
    embeds: true,
    knowsLogprobs: true,
    start: () =>
      inFrontOf(
        { chatModel: "some-chat", embedModel: "some-embed" },
        async (models) => [await FakeOtherServer.start({ models: Object.values(models) })],
        { "some-chat": { capabilities: chats }, "some-embed": { capabilities: embeds } },
      ),
  },
];

async function frontedDemonstration(): Promise<Fronted> {
  const up = await startUp();
  return {
    endpoint: up.endpoint,
    chatModel: "scripted",
    embedModel: "scripted:embed",
    [Symbol.asyncDispose]: () => up[Symbol.asyncDispose](),
  };
}

type Models = Pick<Fronted, "chatModel" | "embedModel">;

/** A Trunkline that was told where its model servers are, what the operator says of their models, and nothing else. */
async function inFrontOf(
  models: Models,
  startServers: (models: Models) => Promise<readonly (FakeOllama | FakeOpenAiServer)[]>,
  settings: ModelSettingsFile = {},
): Promise<Fronted> {
  await using parts = new AsyncDisposableStack();
  const servers = await startServers(models);
  for (const server of servers) {
    parts.use(server);
    if (!(server instanceof FakeOllama)) server.onChat = answerAsOpenAi;
  }
  const folder = await mkdtemp(join(tmpdir(), "trunkline-models-"));
  parts.defer(() => rm(folder, { recursive: true }));
  const modelsFile = join(folder, "models.json");
  await writeFile(modelsFile, JSON.stringify(settings));
  const urls = servers.map(({ url }) => url).join(",");
  const { endpoint } = parts.use(
    await startUp({ ...auto, TRUNKLINE_RUNTIME_URL: urls, TRUNKLINE_MODELS_FILE: modelsFile }),
  );
  await endpoint.untilListed(models.chatModel);
  const started = parts.move();
  return { endpoint, ...models, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
