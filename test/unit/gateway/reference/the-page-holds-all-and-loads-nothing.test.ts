import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { parseKeyToken } from "#shared/keys/key-token.ts";
import { fieldsOf } from "../../../../services/gateway/reference/describe-fields.ts";
import { docsPage, docsPolicy } from "../../../../services/gateway/reference/page/docs-page.ts";
import { publicDocument } from "../../../../services/gateway/reference/public-document.ts";

const document = publicDocument({ bodyBytesMax: 1_024, bodyLimitName: "TRUNKLINE_BODY_BYTES_MAX" });
const baseUrl = "https://llm.example:8443/v1";
const page = docsPage(document, baseUrl);

const words = (html: string): string => html.replaceAll("<wbr>", "").replaceAll(/<[^>]*>/g, "");
const said = words(page);
const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);

describe("the page", () => {
  test("has every endpoint, field, header, error and limit of the document", () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, { summary }] of Object.entries(methods)) {
        expect(said).toContain(`${method.toUpperCase()} ${path}`);
        expect(said).toContain(summary);
      }
    }
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      expect(ids).toContain(name);
      for (const { path } of fieldsOf(schema)) expect(said).toContain(path);
    }
    for (const name of Object.keys(document.components.headers)) expect(said).toContain(name);
    for (const { name, value } of document["x-trunkline-limits"]) {
      expect(said).toContain(`${name}${value.toLocaleString("en-US")}`);
    }
    for (const { status, code } of document["x-trunkline-errors"]) expect(ids).toContain(`error-${status}-${code}`);
  });

  test("links only to what is on it, and to the document", () => {
    const links = [...page.matchAll(/ href="([^"]*)"/g)].map(([, to = ""]) => to);
    expect(links.length).toBeGreaterThan(100);
    for (const to of links) {
      if (to.startsWith("#")) expect(ids).toContain(to.slice(1));
      else expect(["openapi.json", "data:,"]).toContain(to);
    }
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("asks nobody for anything: all that it shows and runs is its own, and allowed by its hash", () => {
    expect(page).not.toMatch(/<(?:img|iframe|object|embed|base|form)\b|\bsrc=|@import|url\(| on\w+="|style="/);
    const own = /<(style|script)>([\s\S]*?)<\/\1>/g;
    const inline = [...page.matchAll(own)].map(([, kind, text = ""]) => ({ kind, text }));
    expect(inline.map(({ kind }) => kind)).toEqual(["style", "script"]);
    for (const { kind, text } of inline) {
      const hash = createHash("sha256").update(text).digest("base64");
      expect(docsPolicy).toContain(`${kind}-src 'sha256-${hash}'`);
    }
    expect(docsPolicy).toMatch(/^default-src 'none';/);
  });

  test("has examples that name this gateway, and no key", () => {
    expect(said).toContain(`curl -N ${baseUrl}/chat/completions`);
    expect(said).toContain(`baseURL: &quot;${baseUrl}&quot;`);
    expect(said).toContain(`base_url=&quot;${baseUrl}&quot;`);
    expect(said).toContain(`base_url = &quot;${baseUrl}&quot;`);
    for (const word of said.split(/[^0-9A-Za-z_]+/)) expect(parseKeyToken(word).outcome).toBe("malformed");
  });
});

test("what is text stays text, wherever it comes from", () => {
  const wicked = `<img src=x onerror="alert(1)">&'`;
  const info = { ...document.info, title: wicked, description: `\`${wicked}\`` };
  const schemas = {
    [wicked]: { type: "object" as const, properties: { [wicked]: { const: wicked, description: wicked } } },
  };
  const html = docsPage({ ...document, info, components: { ...document.components, schemas } }, wicked);
  expect(html).not.toContain("<img");
  expect(html).not.toContain(`onerror="`);
  expect(html).toContain("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;&#39;");
});
