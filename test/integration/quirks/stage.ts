import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Endpoint } from "../../harness/endpoint.ts";
import { FakeLlamaServer, type FakeLlamaModel } from "../../harness/fake-llama-server.ts";
import { FakeLmStudio, type FakeLmStudioModel } from "../../harness/fake-lm-studio.ts";
import { FakeMlxLm } from "../../harness/fake-mlx-lm.ts";
import { FakeOllama, type FakeOllamaChat, type FakeOllamaModel } from "../../harness/fake-ollama.ts";
import type { FakeOpenAiChat } from "../../harness/fake-openai-chat.ts";
import { FakeVllm } from "../../harness/fake-vllm.ts";
import { startGatewayInProcess } from "../../harness/gateway-in-process.ts";
import type { Settings } from "../../harness/trunkline-command.ts";
import { fromRuntime, toClient } from "./short-form.ts";

type AnyChat = FakeOllamaChat | FakeOpenAiChat;

interface FakeRuntime extends AsyncDisposable {
  readonly url: string;
  onChat: (chat: never) => void | Promise<void>;
}

/** A fake runtime with the whole of Trunkline in front of it, as a client sees it. */
export interface Stage extends AsyncDisposable {
  readonly endpoint: Endpoint;
  readonly model: string;
  /** Lets the runtime answer every chat like this. */
  play(onChat: (chat: AnyChat) => void | Promise<void>): void;
  /** What the runtime is sent when a client sends this. */
  asked(request: object): Promise<unknown>;
  /** What a client is sent, as a stream, when the runtime sends this. */
  streamed(odd: string, request?: object): Promise<string>;
  /** The same as a whole answer. */
  whole(odd: string, request?: object): Promise<unknown>;
  /** What a client is told when the runtime, or Trunkline for it, refuses. */
  refused(refusal: { readonly status: number; readonly body: string } | undefined, request?: object): Promise<Told>;
}

export interface Told {
  readonly status: number;
  readonly error: unknown;
  readonly retryAfter: string | null;
  readonly shouldRetry: string | null;
}

const user = [{ role: "user", content: "Hi" }];

/** A model that thinks and sees, where the runtime cannot tell. */
const able = { "*": { capabilities: { thinking: true, vision: true, tools: true } } };

interface Play {
  readonly runtime: string;
  readonly fake: FakeRuntime;
  readonly model: string;
  readonly settings?: object;
  readonly env?: Settings;
}

export async function ollamaStage(model: Partial<FakeOllamaModel> = {}, env: Settings = {}): Promise<Stage> {
  const capabilities = ["completion", "tools", "thinking", "vision"];
  const fake = await FakeOllama.start({
    models: [
      { name: "m:latest", capabilities, ...model },
      { name: "vectors:latest", capabilities: ["embedding"] },
    ],
  });
  return stage({ runtime: "ollama", fake, model: "m", env });
}

export async function vllmStage({ toolParser = true } = {}): Promise<Stage> {
  const fake = await FakeVllm.start({ models: [{ id: "m" }], toolParser });
  return stage({ runtime: "vllm", fake, model: "m", ...(toolParser && { settings: able }) });
}

export async function llamaStage(model: Partial<FakeLlamaModel> = {}): Promise<Stage> {
  const template = "{% if tools %}{{ tools }}{% endif %}<think></think>";
  const fake = await FakeLlamaServer.start({ model: { name: "m", vision: true, template, ...model } });
  return stage({ runtime: "llama-server", fake, model: "m" });
}

export async function lmStudioStage(model: Partial<FakeLmStudioModel> = {}): Promise<Stage> {
  const usual: FakeLmStudioModel = { key: "m", type: "vlm", tools: true, thinks: true, loadedTokens: 8_192 };
  const fake = await FakeLmStudio.start({ models: [{ ...usual, ...model }] });
  return stage({ runtime: "lm-studio", fake, model: "m" });
}

export async function mlxStage(): Promise<Stage> {
  const fake = await FakeMlxLm.start({ models: ["m"] });
  return stage({ runtime: "mlx-lm", fake, model: "m", settings: able });
}

async function stage({ runtime, fake, model, settings, env: given }: Play): Promise<Stage> {
  await using parts = new AsyncDisposableStack();
  parts.use(fake);
  const stateDir = mkdtempSync(join(tmpdir(), "trunkline-"));
  parts.defer(() => rmSync(stateDir, { recursive: true }));
  const env: Record<string, string> = { TRUNKLINE_RUNTIME: runtime, TRUNKLINE_RUNTIME_URL: fake.url, ...given };
  if (settings !== undefined) {
    env["TRUNKLINE_MODELS_FILE"] = join(stateDir, "models.json");
    writeFileSync(env["TRUNKLINE_MODELS_FILE"], JSON.stringify(settings));
  }
  const gateway = parts.use(await startGatewayInProcess({ stateDir, env }));
  const { endpoint } = await gateway.issue();
  await endpoint.untilListed(model);
  const ended = parts.move();

  const play = (onChat: (chat: AnyChat) => void | Promise<void>): void => {
    fake.onChat = onChat;
  };
  const saying = (odd: string) =>
    play((chat) => {
      chat.raw(fromRuntime(odd));
      chat.end();
    });
  const chat = (request: object): Promise<Response> => endpoint.chat({ model, messages: user, ...request });

  return {
    endpoint,
    model,
    play,
    async asked(request) {
      const sent = Promise.withResolvers<unknown>();
      play((asked) => {
        sent.resolve(asked.request.body);
        asked.say("Hello");
        asked.done();
      });
      const response = await chat(request);
      if (response.status !== 200) throw new Error(`the chat was refused: ${await response.text()}`);
      await response.text();
      return sent.promise;
    },
    async streamed(odd, request = {}) {
      saying(odd);
      return toClient(await (await chat({ stream: true, ...request })).text());
    },
    async whole(odd, request = {}) {
      saying(odd);
      return (await chat(request)).json();
    },
    async refused(refusal, request = {}) {
      let sent: unknown;
      play((asked) => {
        sent = asked.request.body;
        const { status, body } = refusal ?? { status: 500, body: "{}" };
        asked.refuseWith(status, { contentType: "application/json", body });
      });
      const response = await chat({ stream: true, ...request });
      if (refusal === undefined && sent !== undefined) {
        throw new Error(`the runtime was asked all the same: ${JSON.stringify(sent)}`);
      }
      const { error } = (await response.json()) as { error: unknown };
      const { status, headers } = response;
      return { status, error, retryAfter: headers.get("retry-after"), shouldRetry: headers.get("x-should-retry") };
    },
    [Symbol.asyncDispose]: () => ended.disposeAsync(),
  };
}
