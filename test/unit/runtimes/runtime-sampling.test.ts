import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { chatBody, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { ollamaShow } from "../../../services/agent/runtimes/ollama/ollama-catalogue.ts";
import { ollamaChatRequest, ollamaTextRequest } from "../../../services/agent/runtimes/ollama/ollama-request.ts";
import { llamaServer } from "../../../services/agent/runtimes/openai/llama-server.ts";
import { lmStudio } from "../../../services/agent/runtimes/openai/lm-studio.ts";
import { mlxLm } from "../../../services/agent/runtimes/openai/mlx-lm.ts";
import type { OpenAiProfile } from "../../../services/agent/runtimes/openai/openai-profile.ts";
import { openAiChatRequest, openAiTextRequest } from "../../../services/agent/runtimes/openai/openai-request.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server.ts";
import { vllm } from "../../../services/agent/runtimes/openai/vllm.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

type Sent = Readonly<Record<string, unknown>>;
type Ask = (fields: Partial<ChatBody>) => Sent;

const messages: ChatBody["messages"] = [{ role: "user", content: "Hi" }];
const plain = (request: Sent): Sent => JSON.parse(JSON.stringify(request));

const chatOn =
  (profile: OpenAiProfile, tokenCount?: number): Ask =>
  (fields) => {
    const body = chatBody.parse({ messages, ...fields });
    return plain(
      openAiChatRequest(
        { profile, model: { name: "m", tokenCount } },
        { body, capabilities: { thinking: true }, contextWindow: 4_096 },
      ),
    );
  };
const textOn =
  (profile: OpenAiProfile, tokenCount?: number): Ask =>
  (fields) => {
    const body = { prompt: "Once", ...(fields as object) };
    return plain(openAiTextRequest({ profile, model: { name: "m", tokenCount } }, { body, contextWindow: 4_096 }));
  };

const ollama = (format: string) => {
  const show = ollamaShow.parse({ capabilities: ["completion", "thinking", "insert"], details: { format } });
  return { name: "m:latest", show, loaded: true };
};
const optionsOf = (request: Sent): Sent => plain(request)["options"] as Sent;
const ollamaChat =
  (format: string): Ask =>
  (fields) => {
    const entry = ollama(format);
    const body = chatBody.parse({ messages, ...fields });
    return optionsOf(ollamaChatRequest(entry, { capabilities: entry.show.capabilities, body }));
  };
const ollamaText =
  (format: string): Ask =>
  (fields) =>
    optionsOf(ollamaTextRequest(ollama(format), { prompt: "Once", ...(fields as object) }));

const lengths = { ignore_eos: true, min_tokens: 20 } as const;
const all = { top_k: 40, min_p: 0.05, typical_p: 0.9, repeat_penalty: 1.1, stop_token_ids: [7], ...lengths } as const;
type Field = keyof typeof all;

type Names = Partial<Record<Field, string>>;
/** Fields that a runtime knows by the names that they have here. */
const same = (...fields: Field[]): Names => Object.fromEntries(fields.map((field) => [field, field]));
const repetition: Names = { repeat_penalty: "repetition_penalty" };

const runtimes: readonly (readonly [name: string, chat: Ask, text: Ask, names: Names])[] = [
  [
    "vllm",
    chatOn(vllm),
    textOn(vllm),
    { ...same("top_k", "min_p", "stop_token_ids", "ignore_eos", "min_tokens"), ...repetition },
  ],
  [
    "llama-server",
    chatOn(llamaServer),
    textOn(llamaServer),
    same("top_k", "min_p", "typical_p", "repeat_penalty", "ignore_eos"),
  ],
  ["lm-studio", chatOn(lmStudio), textOn(lmStudio), same("top_k", "repeat_penalty")],
  ["mlx-lm", chatOn(mlxLm), textOn(mlxLm), { ...same("top_k", "min_p"), ...repetition }],
  ["another server", chatOn(otherServer), textOn(otherServer), {}],
  ["ollama", ollamaChat("gguf"), ollamaText("gguf"), same("top_k", "min_p", "typical_p", "repeat_penalty")],
  ["ollama on MLX", ollamaChat("safetensors"), ollamaText("safetensors"), same("top_k", "min_p", "repeat_penalty")],
];

test.each(runtimes)(
  "%s gets the sampling fields beyond OpenAI's that it knows by its own names, and refuses the others by name",
  (...row) => {
    const [, chat, text, names] = row;
    for (const ask of [chat, text]) {
      for (const [field, value] of Object.entries(all)) {
        const name = names[field as Field];
        const wished = { [field]: value };
        if (name !== undefined) expect(ask(wished)).toMatchObject({ [name]: value });
        else expect(faultThrownBy(() => ask(wished))).toMatchObject({ code: "unsupported_parameter", param: field });
      }
    }
  },
);

test.each(runtimes)("%s takes values of sampling fields beyond OpenAI's that change nothing", (_, chat, text) => {
  const neutral = { top_k: 0, min_p: 0, typical_p: 1, repeat_penalty: 1, ignore_eos: false, min_tokens: 0 };
  expect(() => [chat(neutral), text(neutral)]).not.toThrow();
});

const kwargs = { lang: "de" };
test.each([
  ["vllm", vllm, { lang: "de", enable_thinking: false, thinking: false }],
  ["llama-server", llamaServer, { lang: "de", enable_thinking: false }],
  ["mlx-lm", mlxLm, { lang: "de", enable_thinking: false }],
] as const)("arguments of a chat template reach %s beside those that switch its thinking", (_, profile, both) => {
  expect(chatOn(profile)({ chat_template_kwargs: kwargs })).toMatchObject({ chat_template_kwargs: kwargs });
  const sent = chatOn(profile)({ chat_template_kwargs: kwargs, reasoning_effort: "none" });
  expect(sent["chat_template_kwargs"]).toEqual(both);
});

test.each([
  ["lm-studio", chatOn(lmStudio)],
  ["another server", chatOn(otherServer)],
  ["ollama", ollamaChat("gguf")],
])("arguments of a chat template are refused by %s, unless they ask for thinking, which is the default", (_, ask) => {
  const refused = faultThrownBy(() => ask({ chat_template_kwargs: kwargs }));
  expect(refused).toMatchObject({ code: "unsupported_parameter", param: "chat_template_kwargs" });
  expect(ask({ chat_template_kwargs: { enable_thinking: true } })).not.toHaveProperty("chat_template_kwargs");
});

const grammar = 'root ::= "a"';
const choice = { choice: ["a", "b"] };

test("a rule for the whole answer goes to vLLM in one field", () => {
  expect(chatOn(vllm)({ grammar })).toMatchObject({ structured_outputs: { grammar } });
  expect(chatOn(vllm)({ structured_outputs: choice })).toMatchObject({ structured_outputs: choice });
});

test("a rule for the whole answer goes to llama-server as a grammar, without tools", () => {
  expect(chatOn(llamaServer)({ grammar })).toMatchObject({ grammar });
  const tools: ChatBody["tools"] = [{ type: "function", function: { name: "f" } }];
  const fault = faultThrownBy(() => chatOn(llamaServer)({ grammar, tools }));
  expect(fault).toMatchObject({ code: "unsupported_parameter", param: "grammar" });
});

test.each<[string, Ask, Partial<ChatBody>]>([
  ["llama-server", chatOn(llamaServer), { structured_outputs: choice }],
  ["mlx-lm", chatOn(mlxLm), { grammar }],
  ["lm-studio", chatOn(lmStudio), { grammar }],
  ["ollama", ollamaChat("gguf"), { grammar }],
  ["ollama", ollamaChat("gguf"), { structured_outputs: choice }],
  ["another server", chatOn(otherServer), { grammar }],
])("a rule for the whole answer is refused by %s, which would leave it out", (_, ask, fields) => {
  const fault = faultThrownBy(() => ask(fields));
  expect(fault).toBeInstanceOf(Fault);
  expect(fault).toMatchObject({ code: "unsupported_parameter", param: Object.keys(fields)[0] });
});

const biased = (...tokens: string[]) => ({ logit_bias: Object.fromEntries(tokens.map((token) => [token, 1])) });
test.each([
  ["a chat", chatOn],
  ["a text", textOn],
])("a bias in %s is sent for tokens that a model has, and refused where its server dies of others", (_, on) => {
  expect(on(mlxLm, 268)(biased("0", "267"))).toMatchObject(biased("0", "267"));
  for (const token of ["268", "99999999", "4294967296", "-1", "x", ""]) {
    const refused = faultThrownBy(() => on(mlxLm, 268)(biased("5", token)));
    expect(refused).toMatchObject({ code: "invalid_value", param: "logit_bias" });
  }
  const unknown = faultThrownBy(() => on(mlxLm)(biased("5")));
  expect(unknown).toMatchObject({ code: "unsupported_parameter", param: "logit_bias" });
  expect(on(vllm)(biased("99999999"))).toMatchObject(biased("99999999"));
});
