/** The sentence that screen readers read out next: the result of an action. */
import { signal } from "@preact/signals";

export const announcement = signal("");

export function announce(text: string): void {
  // The same sentence again would change nothing.
  announcement.value = "";
  setTimeout(() => (announcement.value = text), 100);
}
