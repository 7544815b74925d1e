import { markup, type Markup } from "./docs-markup.ts";

/** Texts, comments that have a line of their own, and the few words of the languages that the examples are in. */
const coloured =
  /("(?:\\.|[^"\\\n])*")(?=(\s*:)?)|(^\s*(?:#|\/\/).*$)|\b(import|from|const|new|await|for|of|in|if|export|curl|print)\b/gm;

/** Code to be read and copied. Where it names the gateway, the page can put in how its reader reached it. */
export function code(text: string, { baseUrl, label }: { readonly baseUrl: string; readonly label: string }): Markup {
  return markup`<figure><figcaption>${label}</figcaption><pre tabindex="0"><code>${highlighted(text, baseUrl)}</code></pre></figure>`;
}

function highlighted(text: string, baseUrl: string): Markup[] {
  const pieces: Markup[] = [];
  let end = 0;
  for (const found of text.matchAll(coloured)) {
    const [whole, string, colon, comment] = found;
    pieces.push(withBase(text.slice(end, found.index), baseUrl));
    const kind = string === undefined ? (comment === undefined ? "w" : "c") : colon === undefined ? "s" : "k";
    pieces.push(markup`<span class="${kind}">${withBase(whole, baseUrl)}</span>`);
    end = found.index + whole.length;
  }
  pieces.push(withBase(text.slice(end), baseUrl));
  return pieces;
}

function withBase(text: string, baseUrl: string): Markup {
  const [first = "", ...rest] = text.split(baseUrl);
  return markup`${first}${rest.map((after) => markup`<span data-base>${baseUrl}</span>${after}`)}`;
}
