import { afterAll, beforeAll, onTestFinished } from "vitest";
import { systemClock as clock } from "#shared/process/clock.ts";
import { recogniseOllama } from "../../../services/agent/runtimes/ollama/ollama.ts";
import { recogniseOpenAiServer } from "../../../services/agent/runtimes/openai/recognise-openai-server.ts";
import type { Runtime } from "../../../services/agent/runtimes/runtime.ts";
import { FakeLlamaServer } from "../../harness/fake-llama-server.ts";
import { FakeLmStudio } from "../../harness/fake-lm-studio.ts";
import { FakeMlxLm } from "../../harness/fake-mlx-lm.ts";
import { FakeOllama, type FakeOllamaChat, type FakeOllamaText } from "../../harness/fake-ollama.ts";
import type { FakeOpenAiChat, FakeOpenAiText } from "../../harness/fake-openai-chat.ts";
import { FakeOtherServer } from "../../harness/fake-other-server.ts";
import { FakeVllm } from "../../harness/fake-vllm.ts";

export type AnyChat = FakeOllamaChat | FakeOpenAiChat;
export type OnChat = (chat: AnyChat) => void | Promise<void>;

export type AnyText = FakeOllamaText | FakeOpenAiText;
export type OnText = (text: AnyText) => void | Promise<void>;

export interface FakedRuntime {
  readonly runtime: Runtime;
  readonly port: number;
  /** Lets it answer every chat like this. */
  play(onChat: OnChat): void;
  /** Lets it continue every text like this. */
  playText(onText: OnText): void;
  /** What it was sent with the texts that it was to continue. */
  texts(): readonly Readonly<Record<string, unknown>>[];
  /** It dies. */
  stop(): Promise<void>;
}

type AnyFake = FakeOllama | FakeVllm | FakeLlamaServer | FakeLmStudio | FakeMlxLm | FakeOtherServer;

/** One fake of each kind with the model `m`, on a port of its own unless told. */
const starts: Readonly<Record<string, (port: number) => Promise<AnyFake>>> = {
  ollama: (port) => FakeOllama.start({ models: [{ name: "m:latest", capabilities: ["completion", "tools"] }], port }),
  vllm: (port) => FakeVllm.start({ models: [{ id: "m" }], port }),
  "llama-server": (port) => FakeLlamaServer.start({ model: { name: "m" }, port }),
  "lm-studio": (port) => FakeLmStudio.start({ models: [{ key: "m", loadedTokens: 8_192 }], port }),
  "mlx-lm": (port) => FakeMlxLm.start({ models: ["m"], port }),
  openai: (port) => FakeOtherServer.start({ models: ["m"], port }),
};

export const kinds = Object.keys(starts);
/** Those whose answers are server-sent events. */
export const eventKinds = kinds.filter((kind) => kind !== "ollama");

export async function startFake(kind: string, port = 0): Promise<AnyFake> {
  const start = starts[kind];
  if (start === undefined) throw new Error(`there is no fake of ${kind}`);
  return start(port);
}

/** A fake with its adapter, which was found by what the fake answers. */
export async function fakedRuntime(kind: string): Promise<FakedRuntime> {
  const fake = await startFake(kind);
  const { signal } = new AbortController();
  const site = { url: fake.url, clock };
  const runtime =
    kind === "ollama"
      ? await recogniseOllama(site, signal)
      : await recogniseOpenAiServer(site, { allowOther: true, signal });
  if (runtime?.name !== kind) throw new Error(`${kind} was taken for ${runtime?.name ?? "nothing"}`);
  await runtime.catalogue(signal);
  return {
    runtime,
    port: Number(new URL(fake.url).port),
    play(onChat) {
      fake.onChat = onChat;
    },
    playText(onText) {
      fake.onText = onText;
    },
    texts: () => fake.requestsTo(kind === "ollama" ? "/api/generate" : "/v1/completions").map(({ body }) => body),
    stop: () => fake.stop(),
  };
}

/** A fake of each kind for the tests of a file, by its kind. */
export function fakesOfTests(): (kind: string) => FakedRuntime {
  const faked = new Map<string, FakedRuntime>();
  beforeAll(async () => {
    await Promise.all(kinds.map(async (kind) => faked.set(kind, await fakedRuntime(kind))));
  });
  afterAll(async () => {
    for (const one of faked.values()) {
      await one.runtime.close?.();
      await one.stop();
    }
  });
  return (kind) => {
    const found = faked.get(kind);
    if (found === undefined) throw new Error(`there is no fake of ${kind}`);
    return found;
  };
}

/** The adapter of a fake that speaks OpenAI's API, on a machine like this and until the end of the test. */
export async function runtimeAt(fake: AsyncDisposable & { url: string }): Promise<Runtime> {
  const { signal } = new AbortController();
  const options = { signal, platform: "linux", hubFolder: "/nowhere" };
  const runtime = await recogniseOpenAiServer({ url: fake.url, clock }, options);
  if (runtime === undefined) throw new Error("it was not recognised");
  onTestFinished(async () => {
    await runtime.close?.();
    await fake[Symbol.asyncDispose]();
  });
  await runtime.catalogue(signal);
  return runtime;
}

/** One chunk or line of an answer with these words, in the form of its runtime. */
export function oneSaying(kind: string, text: string): string {
  if (kind === "ollama") return `${JSON.stringify({ message: { role: "assistant", content: text }, done: false })}\n`;
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`;
}
