import { describe, expect, test } from "vitest";
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

describe.each(asking)("a bias in %s for a server that dies of a token that there is not", (_, ask) => {
  test.each(["268", "99999999", "4294967296", "-1", "x", ""])("is refused for %j", (token) => {
    expect(() => ask(mlxLm, { "5": 1, [token]: 1 }, 268)).toThrow(
      expect.objectContaining({ code: "invalid_value", param: "logit_bias" }),
    );
  });

  test("is sent for tokens of the model", () => {
    expect(ask(mlxLm, { "0": 1, "267": -1 }, 268)).toMatchObject({ logit_bias: { "0": 1, "267": -1 } });
  });

  test("is refused where nobody knows how many tokens there are", () => {
    expect(() => ask(mlxLm, { "5": 1 })).toThrow(
      expect.objectContaining({ code: "unsupported_parameter", param: "logit_bias" }),
    );
  });

  test("is the other servers' own to judge", () => {
    expect(ask(vllm, { "99999999": 1 })).toMatchObject({ logit_bias: { "99999999": 1 } });
  });
});
