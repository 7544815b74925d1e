import { Argument } from "commander";
import { keyId, parseKeyToken, type KeyId } from "#shared/keys/key-token.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";

export function keyArgument(): Argument {
  return new Argument("<id>", "the id of the key, as `trunkline keys list` shows it").argParser(givenKeyId);
}

/** Who pastes a whole key means that key. What is given is never repeated, since it may be one that was cut. */
export function givenKeyId(given: string): KeyId {
  const text = given.trim();
  const pasted = parseKeyToken(text);
  if (pasted.outcome === "parsed") return pasted.token.id;
  const id = keyId.safeParse(text);
  if (id.success) return id.data;
  throw new StartFailure(
    exitCodes.usage,
    `The id ${id.error.issues[0]?.message}: \`trunkline keys list\` shows the ids of all.`,
  );
}
