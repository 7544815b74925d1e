import { describe, expect, test } from "vitest";
import { chatBody, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { readRequest } from "../harness/read-requests.ts";
import { codingClients } from "../clients/coding-clients.ts";
import { recordingIn } from "../clients/recordings.ts";
import { thinkingTemplate } from "./templates.ts";
import { noEngine, only, TinyRuntime } from "./tiny-runtime.ts";

const outers: Readonly<Record<string, string>> = {
  "/v1/messages": "message",
  "/v1/responses": "response",
  "/v1/chat/completions": "chat",
};

/** Returns the prompts of a recorded task as machines get them. Each request has another billing line. */
function promptsOf({ requests }: ReturnType<typeof recordingIn>): ChatBody[] {
  const bodies = requests.map(({ url, body }, turn) => {
    const { pathname } = new URL(url, "http://gateway");
    const sent = JSON.stringify(body).replaceAll("cc_entrypoint=sdk-cli;", `cc_entrypoint=sdk-cli; cch=${turn};`);
    const read = readRequest(outers[pathname] ?? "chat", Buffer.from(sent));
    return chatBody.parse(JSON.parse(Buffer.from(read.body).toString()));
  });
  // A request without tools is beside the task, such as for a title.
  return bodies.filter(({ tools }) => tools !== undefined);
}

const wordsMax = 400;

/** The most frequent words of texts, which are tokens of their own, as with any real model. */
function wordsOf(bodies: readonly ChatBody[]): string[] {
  const counts = new Map<string, number>();
  for (const [word] of JSON.stringify(bodies.at(-1)).matchAll(/ ?\w{3,}/g))
    counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, wordsMax)
    .map(([word]) => word);
}

const contextTokens = 65_536;
const shareMin = 0.995;

/** Prompts from here on are judged. */
const promptTokensMin = 4_000;

/** `TURNS=all` runs every turn of the conversations; otherwise every fifth is enough. */
const stride = process.env["TURNS"] === "all" ? 1 : 5;
/** Qwen Code is missing: it lists the files of its folder anew, in its first message, when a conversation is resumed. */
const agents = codingClients.filter(({ name }) => name !== "Qwen Code");

/**
 * The template keeps all earlier turns, thoughts among them. The engine is llama.cpp, whose model answers one token. What
 * the engine has of a turn when it is sent once more, byte for byte, is the measure of the next turn.
 */
describe.skipIf(noEngine)("a turn of a recorded coding agent finds the turn before in the engine's cache", () => {
  test.each(agents.map((client) => [client.name, recordingIn(client, "story")] as const))(
    "%s",
    async (name, recording) => {
      const prompts = promptsOf(recording).filter((_, turn) => turn % stride === 0);
      const words = wordsOf(prompts);
      const model = {
        name: "m",
        scripts: {},
        noise: 1,
        narrow: true,
        template: thinkingTemplate,
        contextTokens,
        words,
      };
      await using tiny = await TinyRuntime.start(model, { slots: 1, contextTokens, threads: 2 });
      const cachedOf = async ({ messages, tools }: ChatBody) => {
        const usage = only(await tiny.events({ messages, ...(tools && { tools }), max_tokens: 1 }), "usage");
        return { promptTokens: usage?.promptTokens ?? 0, cachedTokens: usage?.cachedTokens ?? 0 };
      };
      const shares: number[] = [];
      let again: number | undefined;
      for (const [turn, prompt] of prompts.entries()) {
        const { promptTokens, cachedTokens } = await cachedOf(prompt);
        if (again !== undefined && promptTokens >= promptTokensMin) shares.push(Math.min(1, cachedTokens / again));
        // All but the last token, as the first turn shows.
        again = turn === 0 ? (await cachedOf(prompt)).cachedTokens : promptTokens - 1;
        if (turn === 0) expect(again).toBe(promptTokens - 1);
      }
      console.log(
        `${name}: ${shares.length} turns, from the cache at least ${(100 * Math.min(...shares)).toFixed(2)} %`,
      );
      expect(shares).toHaveLength(prompts.length - 1);
      expect(Math.min(...shares)).toBeGreaterThanOrEqual(shareMin);
    },
    300_000,
  );
});
