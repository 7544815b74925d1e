import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelSettingsFile } from "../../services/agent/models/model-set.ts";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import type { Settings } from "../harness/trunkline-command.ts";

/** A Trunkline in front of one vLLM whose every answer a test gives, and whose every question it sees. */
export interface StagedVllm extends AsyncDisposable {
  readonly up: UpProcess;
  readonly vllm: FakeVllm;
  /** A model that can do all that a chat can ask for, with an id that must survive a path. */
  readonly model: string;
  /** Gives the next chats this answer. */
  answers(how: (chat: FakeOpenAiChat) => void | Promise<void>): void;
  /** The body of the latest chat that the runtime was asked for. */
  readonly asked: () => Readonly<Record<string, unknown>>;
}

const model = "acme/sees-and-thinks:8b";
const everything: ModelSettingsFile = {
  [model]: { capabilities: { completion: true, tools: true, vision: true, thinking: true } },
};

export async function startStagedVllm(
  settings: Settings = {},
  vllmOptions: { readonly maxModelLen?: number } = {},
): Promise<StagedVllm> {
  await using parts = new AsyncDisposableStack();
  const vllm = parts.use(await FakeVllm.start({ models: [{ id: model }], fillsIn: true, ...vllmOptions }));
  const folder = await mkdtemp(join(tmpdir(), "trunkline-models-"));
  parts.defer(() => rm(folder, { recursive: true }));
  const modelsFile = join(folder, "models.json");
  await writeFile(modelsFile, JSON.stringify(everything));
  const found = { TRUNKLINE_RUNTIME: "auto", TRUNKLINE_RUNTIME_URL: vllm.url, TRUNKLINE_MODELS_FILE: modelsFile };
  const up = parts.use(await startUp({ ...found, ...settings }));
  await up.endpoint.untilListed(model);
  const started = parts.move();
  return {
    up,
    vllm,
    model,
    answers(how) {
      vllm.onChat = how;
    },
    asked: () => vllm.chats.at(-1)?.body ?? {},
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
