import { describe, expect, test } from "vitest";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

const on = staged(everyRuntime);
const begun = {
  messages: [
    { role: "user", content: "Count." },
    { role: "assistant", content: "The letters are alpha beta" },
  ],
};

/** An answer in each runtime's form, in pieces that need not end where the beginning does. */
const odd = (runtime: RuntimeName, ...pieces: string[]): string =>
  runtime === "Ollama"
    ? [
        ...pieces.map((text) => `{… "message":{"role":"assistant","content":"${text}"},"done":false}`),
        `{… "message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}`,
      ].join("\n")
    : [
        ...pieces.map((text) => `data: {… "choices":[{"index":0,"delta":{"content":"${text}"}}]}`),
        `data: {… "choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
        `data: [DONE]`,
      ].join("\n");

const said = (text: string) => ({ choices: [{ message: { content: text } }] });

describe("quirk 10: a last message of the assistant's is gone on from, or the client is told that it cannot be", () => {
  test.each<RuntimeName>(["vLLM", "llama-server"])("%s goes on when it is told to, and only then", async (runtime) => {
    expect(await on(runtime).asked(begun)).toMatchObject({
      continue_final_message: true,
      add_generation_prompt: false,
    });
    const sent = await on(runtime).asked({});
    expect(sent).not.toHaveProperty("continue_final_message");
    expect(sent).not.toHaveProperty("add_generation_prompt");
  });

  test.each<RuntimeName>(["vLLM", "llama-server"])(
    "%s says nothing twice then, and what it says is kept",
    async (runtime) => {
      expect(await on(runtime).whole(odd(runtime, "alpha beta", " gamma"), begun)).toMatchObject(
        said("alpha beta gamma"),
      );
      expect(await on(runtime).whole(odd(runtime, " gamma"), begun)).toMatchObject(said(" gamma"));
    },
  );

  test.each<[RuntimeName, string[]]>(
    (["Ollama", "LM Studio"] as const).flatMap((runtime): [RuntimeName, string[]][] => [
      [runtime, ["The letters are alpha beta", " gamma"]],
      [runtime, ["The letters are alpha beta gamma"]],
      [runtime, ["The le", "tters are alpha b", "eta ga", "mma"]],
      [runtime, [" gamma"]],
    ]),
  )(
    "%s may say the beginning once more, as in %j, and the client gets only what follows it",
    async (runtime, pieces) => {
      expect(await on(runtime).whole(odd(runtime, ...pieces), begun)).toMatchObject(said(" gamma"));
    },
  );

  test.each<RuntimeName>(["Ollama", "LM Studio"])(
    "%s may go on with what is the same as a short beginning",
    async (runtime) => {
      const short = {
        messages: [
          { role: "user", content: "Count." },
          { role: "assistant", content: "[" },
        ],
      };
      expect(await on(runtime).whole(odd(runtime, "[1]", "]"), short)).toMatchObject(said("[1]]"));
    },
  );

  test.each<RuntimeName>(["Ollama", "LM Studio"])(
    "%s may begin in the same way and say something else",
    async (runtime) => {
      expect(await on(runtime).whole(odd(runtime, "The letters", " omega"), begun)).toMatchObject(
        said("The letters omega"),
      );
      expect(await on(runtime).whole(odd(runtime, "The letters"), begun)).toMatchObject(said("The letters"));
    },
  );

  test("mlx-lm always begins anew, so that it is a 400 that names the message", async () => {
    expect(await on("mlx-lm").refused(undefined, begun)).toMatchObject({
      status: 400,
      error: { param: "messages[1]" },
    });
  });

  test("llama-server takes one such message and refuses two, which is told as the messages' fault", async () => {
    const two = [...begun.messages, { role: "assistant", content: "gamma" }];
    on("llama-server").play(() => expect.unreachable("the chat was taken"));
    const response = await on("llama-server").endpoint.chat({ model: "m", messages: two });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "unsupported_value", param: "messages" } });
  });
});
