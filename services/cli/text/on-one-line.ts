/**
 * Replaces control characters in a text from clients or other hosts. Such a text can then neither end its line nor
 * control the terminal.
 */
export function onOneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, "?");
}
