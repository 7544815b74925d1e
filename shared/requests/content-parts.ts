import type { CapturedContent } from "../records/captured-content.ts";

/** Returns the captured content of a request as texts under headings, for people. The browser loads this file. */
export function partsOf({ prompt, answer, cut }: CapturedContent): readonly (readonly [title: string, text: string])[] {
  const { messages = [], ...fields } = Object(typeof prompt === "string" ? { prompt } : prompt) as AskedTexts;
  const rest = Object.keys(fields).length > 0 ? [["fields of the request", textOf(fields)] as const] : [];
  return [
    ...messages.map(({ role, ...message }) => [role, textOf(message)] as const),
    ...rest,
    ...answer.map(({ kind, choice, text }) => {
      const which = choice > 0 ? ` ${choice + 1}` : "";
      return [`answer${which}: ${kind.replace("_", " ")}`, text] as const;
    }),
    ...(cut
      ? [["cut", "A part is left out: 1 MiB of a request is kept, and 64 MiB of those under way."] as const]
      : []),
  ];
}

interface AskedTexts {
  readonly messages?: readonly { readonly role: string; readonly content?: unknown }[];
}

/** Returns the one text of a message or a prompt; JSON for all else. */
function textOf(value: object): string {
  const [only, ...others] = Object.values(value);
  return typeof only === "string" && others.length === 0 ? only : JSON.stringify(value, null, 2);
}
