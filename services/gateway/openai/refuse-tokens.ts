import { Fault } from "#shared/fault/fault.ts";

/** Refuses token ids as input. Token ids belong to one tokenizer, and clients tokenize texts with OpenAI's. */
export function refuseTokens(input: unknown, param: string): void {
  const [first] = Array.isArray(input) ? input : [];
  const isTokens = typeof first === "number" || (Array.isArray(first) && typeof first[0] === "number");
  if (!isTokens) return;
  throw new Fault("invalid_type", {
    message: `'${param}' must be text, not tokens: the tokens of one model are not those of another (in LangChain: check_embedding_ctx_length=False).`,
    param,
  });
}
