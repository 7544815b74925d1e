import { Fault } from "#shared/fault/fault.ts";
import { type ChatBody, numberBounds, unknownFields } from "#shared/protocol/job-bodies.ts";
import { paramOf } from "../http/read-shape.ts";
import type { JobOffer } from "../jobs/answer-course.ts";
import type { Rendering } from "../apis/chat/render-chat.ts";

/** Returns the paths of the bounds of numbers in the schema of an answer; undefined if there are none. */
export function boundsOf({ response_format }: ChatBody): readonly string[] | undefined {
  if (response_format?.type !== "json_schema") return undefined;
  const withoutBounds: unknown = JSON.parse(JSON.stringify({ response_format }), (key, value: unknown) =>
    typeof value === "number" && numberBounds.includes(key) ? undefined : value,
  );
  const found = unknownFields({ response_format }, withoutBounds).map(paramOf);
  return found.length === 0 ? undefined : found;
}

/** Returns the names, in the client's own words, of those bounds that the runtime of an offer does not hold. */
export function unheldBounds(
  bounds: readonly string[],
  { chosen }: JobOffer,
  adaptFault: Rendering["adaptFault"],
): readonly string[] {
  // The runtime of GGUF files: its grammars know no bounds of numbers.
  if (chosen.model.runtime !== "llama") return [];
  const names = bounds.map(
    (param) => adaptFault(new Fault("unsupported_value", { message: "", param })).param ?? param,
  );
  return [...new Set(names)];
}
