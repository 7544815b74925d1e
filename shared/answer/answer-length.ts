import { Fault } from "../fault/fault.ts";
import { limits } from "../protocol/limits.ts";

/** An answer that is gathered to be sent in one piece may not grow without end. */
export function insistOnLength(characters: number): void {
  if (characters <= limits.wholeAnswerCharactersMax) return;
  throw new Fault("invalid_value", {
    message: `The answer is longer than ${limits.wholeAnswerCharactersMax} characters (wholeAnswerCharactersMax); ask for it as a stream.`,
    param: "stream",
  });
}
