import { Fault } from "../fault/fault.ts";
import { limits } from "../protocol/limits.ts";

/** Throws when a gathered answer, which is sent in one piece, exceeds its limit. */
export function insistOnLength(characters: number): void {
  if (characters <= limits.wholeAnswerCharactersMax) return;
  throw new Fault("invalid_value", {
    message: `The answer is longer than ${limits.wholeAnswerCharactersMax} characters (wholeAnswerCharactersMax); ask for it as a stream.`,
    param: "stream",
  });
}
