import { randomInt } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { GgufFile } from "./gguf-file.ts";
import type { Library, Model, Sampling, Token, TokenBias } from "./gguf-library.ts";

/** The defaults of llama.cpp, where neither the request nor the model's file sets a value. */
const samplingDefaults = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 };

const seedsMax = 2 ** 32;

/** The fields of a request that set the sampling. */
type Wish = Pick<ChatBody, "temperature" | "top_p" | "seed" | "frequency_penalty" | "presence_penalty" | "logit_bias">;

/** Returns the options by which the engine chooses the next token. */
export function samplingOf(given: {
  readonly body: Wish;
  readonly file: Pick<GgufFile, "sampling" | "tokenCount">;
  readonly library: Library;
  readonly model: Model;
  /** The tokens of the answer so far. */
  readonly said: () => readonly Token[];
}): Sampling {
  const { body, file, said } = given;
  const { temperature, topK, topP, minP } = { ...samplingDefaults, ...file.sampling };
  const { frequency_penalty: frequencyPenalty = 0, presence_penalty: presencePenalty = 0 } = body;
  const penalised = frequencyPenalty !== 0 || presencePenalty !== 0;
  const tokenBias = biasOf(given);
  return {
    temperature: body.temperature ?? temperature,
    topK,
    topP: body.top_p ?? topP,
    minP,
    seed: body.seed === undefined ? randomInt(seedsMax) : ((body.seed % seedsMax) + seedsMax) % seedsMax,
    ...(penalised && { repeatPenalty: { punishTokens: said, penalty: 1, frequencyPenalty, presencePenalty } }),
    ...(tokenBias !== undefined && { tokenBias }),
  };
}

function biasOf(given: {
  readonly body: Wish;
  readonly file: Pick<GgufFile, "tokenCount">;
  readonly library: Library;
  readonly model: Model;
}): TokenBias | undefined {
  const { body, file, library, model } = given;
  const wanted = Object.entries(body.logit_bias ?? {});
  if (wanted.length === 0) return undefined;
  const bias = new library.TokenBias(model.tokenizer);
  for (const [key, logit] of wanted) {
    const token = Number(key);
    if (!/^\d{1,9}$/.test(key) || token >= file.tokenCount) throw refused(key, "no token of this model");
    if (model.isEogToken(token)) throw refused(key, "the token that ends an answer, which cannot be biased here");
    bias.set(token, { logit });
  }
  return bias;
}

function refused(key: string, what: string): Fault {
  return new Fault("invalid_value", { message: `'logit_bias' names ${key}, which is ${what}.`, param: "logit_bias" });
}
