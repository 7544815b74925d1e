import { Argument } from "commander";
import { keyId, parseKeyToken, type KeyId } from "#shared/keys/key-token.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";

export function keyArgument(): Argument {
  return new Argument("<id>", "the id of the key, as `trunkline keys list` shows it").argParser(givenKeyId);
}

/**
 * Reads a key's id, also from a whole pasted key. The error never repeats the input, since it may be a part of a key.
 */
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
