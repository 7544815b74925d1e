import { hash } from "node:crypto";
import type { NamedUser } from "../people/end-users.ts";

/** A longer name is known by its beginning and its hash. */
const nameCharactersMax = 1_024;
const beginningCharacters = 64;

/** Returns the end user that a request names: OpenAI's field, the one before it, or Anthropic's. */
export function namedUser({ safety_identifier, user, metadata }: Record<string, unknown>): NamedUser | undefined {
  if (isGiven(safety_identifier)) return { field: "safety_identifier", name: nameIn(safety_identifier) };
  if (isGiven(user)) return { field: "user", name: nameIn(user) };
  const id: unknown = typeof metadata === "object" && metadata !== null && Reflect.get(metadata, "user_id");
  return id && isGiven(id) ? { field: "metadata.user_id", name: nameIn(id) } : undefined;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

function nameIn(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  if (value.length <= nameCharactersMax) return value;
  // A copy, so that the long text does not stay with the request.
  return Buffer.from(`${value.slice(0, beginningCharacters)} ${hash("sha256", value)}`).toString();
}
