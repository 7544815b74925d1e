import { Fault } from "#shared/fault/fault.ts";
import type { TextToContinue } from "#shared/protocol/complete-body.ts";
import { refuseAllBut } from "./refuse-unsupported.ts";

export type TextField = keyof TextToContinue;

/** What every runtime that continues texts honours, or its adapter in its place. */
const honouredByAll: readonly TextField[] = [
  "max_tokens",
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "stop",
];

/** The fields of a text to be continued that a runtime honours: those that all do, and what it does beside. */
export function honouringInTexts(...beside: readonly TextField[]): ReadonlySet<TextField> {
  return new Set([...honouredByAll, ...beside]);
}

/** Refuses a text to be continued with what a runtime cannot honour. */
export function refuseUnsupportedText(body: TextToContinue, honoured: ReadonlySet<TextField>): void {
  const neutral = { logit_bias: ({ logit_bias: bias = {} }: TextToContinue) => Object.keys(bias).length === 0 };
  refuseAllBut(honoured, { body, subject: "prompt", neutral });
}

/** For a runtime that has to be given something to go on from. */
export function refuseEmptyText({ prompt }: TextToContinue): void {
  if (prompt === "") throw nothingToContinue();
}

/** There is no answer to nothing, unless the model itself begins all texts with a token of its own. */
export function nothingToContinue(): Fault {
  return new Fault("invalid_value", {
    message: "The model has nothing to go on from: 'prompt' is empty.",
    param: "prompt",
  });
}
