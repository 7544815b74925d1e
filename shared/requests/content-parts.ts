import type { CapturedContent } from "../records/captured-content.ts";

/** Returns the captured content of a request as texts under headings, for people. The browser loads this file. */
export function partsOf({ prompt, answer, cut }: CapturedContent): readonly (readonly [title: string, text: string])[] {
  const { messages = [], ...fields } = Object(typeof prompt === "string" ? { content: prompt } : prompt) as AskedTexts;
  const request = textOf(fields);
  return [
    ...messages.map(({ role, ...message }) => [role, textOf(message)] as const),
    ...answer.map(({ kind, choice, text }) => {
      const which = choice > 0 ? ` ${choice + 1}` : "";
      return [`answer${which}: ${kind.replace("_", " ")}`, text] as const;
    }),
    ...(request === "" ? [] : [[messages.length > 0 ? "further fields" : "request", request] as const]),
    ...(cut
      ? [["cut", "A part is left out: 1 MiB of a request is kept, and 64 MiB of those under way."] as const]
      : []),
  ];
}

interface AskedTexts {
  readonly messages?: readonly { readonly role: string; readonly content?: unknown }[];
}

/** Returns the content of a message as it is, if it is one text, and all else as JSON. */
function textOf({ content = "", ...others }: { readonly content?: unknown }): string {
  const parts = [content ?? "", Object.keys(others).length > 0 ? others : ""];
  const texts = parts.map((each) => (typeof each === "string" ? each : JSON.stringify(each, null, 2)));
  return texts.filter((text) => text !== "").join("\n");
}
