import { Fault } from "#shared/fault/fault.ts";
import type { JobOffer } from "../jobs/answer-course.ts";
import type { Rendering } from "../requests/endpoint.ts";
import type { ChatForm } from "./read-chat.ts";
import { withClientNames } from "./request-tools.ts";

/** Returns the rendering of a chat with the client's own names of tools, and of bounds that its runtime does not hold. */
export function inClientWords({ toolNames, bounds }: ChatForm, rendering: Rendering): Rendering {
  return {
    ...rendering,
    render: (head, offer) => withClientNames(rendering.render(head, offer), toolNames),
    unheldBy: bounds && ((offer) => unheldBounds(bounds, offer, rendering.adaptFault)),
  };
}

/** Returns the names, in the client's own words, of those bounds that the runtime of an offer does not hold. */
function unheldBounds(
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
