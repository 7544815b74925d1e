import { expect, test } from "vitest";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { mlxLm } from "../../../services/agent/runtimes/openai/mlx-lm.ts";
import { openAiChatRequest, openAiTextRequest } from "../../../services/agent/runtimes/openai/openai-request.ts";
import { vllm } from "../../../services/agent/runtimes/openai/vllm.ts";

type Bias = Record<string, number>;

const asking: readonly (readonly [string, (profile: typeof mlxLm, bias: Bias, tokenCount?: number) => unknown])[] = [
  [
    "a chat",
    (profile, bias, tokenCount) => {
      const body = chatBody.parse({ messages: [{ role: "user", content: "Hi" }], logit_bias: bias });
      const run = { body, capabilities: { thinking: false }, contextWindow: 4_096 };
      return openAiChatRequest({ profile, model: { name: "m", tokenCount } }, run);
    },
  ],
  [
    "a text",
    (profile, bias, tokenCount) => {
      const body = { prompt: "Hi", logit_bias: bias };
      return openAiTextRequest({ profile, model: { name: "m", tokenCount } }, { body, contextWindow: 4_096 });
    },
  ],
];

test.each(asking)("a bias in %s for a token that there is not is refused where the server dies of it", (_, ask) => {
  for (const token of ["268", "99999999", "4294967296", "-1", "x", ""]) {
    expect(() => ask(mlxLm, { "5": 1, [token]: 1 }, 268)).toThrow(
      expect.objectContaining({ code: "invalid_value", param: "logit_bias" }),
    );
  }
});

test.each(asking)(
  "a bias in %s is sent for tokens of the model, and left to servers that judge it themselves",
  (_, ask) => {
    expect(ask(mlxLm, { "0": 1, "267": -1 }, 268)).toMatchObject({ logit_bias: { "0": 1, "267": -1 } });
    expect(ask(vllm, { "99999999": 1 })).toMatchObject({ logit_bias: { "99999999": 1 } });
  },
);

test.each(asking)("a bias in %s is refused where nobody knows how many tokens there are", (_, ask) => {
  expect(() => ask(mlxLm, { "5": 1 })).toThrow(
    expect.objectContaining({ code: "unsupported_parameter", param: "logit_bias" }),
  );
});
