import { Fault } from "#shared/fault/fault.ts";
import type { TextToContinue } from "#shared/protocol/complete-body.ts";
import { refuseAllBut } from "./refuse-unsupported.ts";

export type TextField = keyof TextToContinue;

/** The fields that every runtime with completions honours, itself or through its adapter. */
const honouredByAll: readonly TextField[] = [
  "max_tokens",
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "stop",
];

/** Returns the fields of a completion that a runtime honours: the common fields, and its own fields. */
export function honouringInTexts(...beside: readonly TextField[]): ReadonlySet<TextField> {
  return new Set([...honouredByAll, ...beside]);
}

/** Refuses a completion with a field that the runtime does not honour. */
export function refuseUnsupportedText(body: TextToContinue, honoured: ReadonlySet<TextField>): void {
  const neutral = { logit_bias: ({ logit_bias: bias = {} }: TextToContinue) => Object.keys(bias).length === 0 };
  refuseAllBut(honoured, { body, subject: "prompt", neutral });
}

/** Refuses an empty prompt, for a runtime that needs text to continue. */
export function refuseEmptyText({ prompt }: TextToContinue): void {
  if (prompt === "") throw nothingToContinue();
}

/**
 * Returns the fault for an empty prompt. Only a model that begins all texts with a token of its own can answer an empty
 * prompt.
 */
export function nothingToContinue(): Fault {
  return new Fault("invalid_value", {
    message: "The model has nothing to go on from: 'prompt' is empty.",
    param: "prompt",
  });
}
