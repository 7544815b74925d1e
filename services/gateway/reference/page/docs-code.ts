import { markup, type Markup } from "./docs-markup.ts";

/** Matches strings, comments on a line of their own, and the keywords of the example languages. */
const coloured =
  /("(?:\\.|[^"\\\n])*")(?=(\s*:)?)|(^\s*(?:#|\/\/).*$)|\b(import|from|const|new|await|for|of|in|if|export|curl|print)\b/gm;

/**
 * Renders code with a caption. Each base URL is marked, so that the page can replace it with the URL that its reader
 * used.
 */
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
