import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { sayHello } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { WatchedFetch } from "./watched-fetch.ts";

/** A stage, and OpenAI's client, which asks once and is watched. */
export interface StagedOpenAi {
  readonly stage: StagedVllm;
  readonly client: OpenAI;
  readonly watched: WatchedFetch;
}

/** Starts a stage for the tests that are declared where this is called; each of them has a client of its own. */
export function stagedOpenAi(answer: (chat: FakeOpenAiChat) => void = sayHello): StagedOpenAi {
  let stage: StagedVllm;
  let client: OpenAI;
  let watched: WatchedFetch;
  beforeAll(async () => void (stage = await startStagedVllm()));
  beforeEach(() => {
    watched = new WatchedFetch();
    const { baseUrl: baseURL, key: apiKey } = stage.up.endpoint;
    client = new OpenAI({ baseURL, apiKey, maxRetries: 0, fetch: watched.fetch });
    stage.answers(answer);
  });
  afterAll(() => stage[Symbol.asyncDispose]());
  return {
    get stage() {
      return stage;
    },
    get client() {
      return client;
    },
    get watched() {
      return watched;
    },
  };
}
