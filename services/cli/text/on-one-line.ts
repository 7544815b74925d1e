/** A text that clients or other hosts wrote, such that it can neither end its line nor steer the terminal. */
export function onOneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, "?");
}
