import type { Case, Section, Told } from "./row.ts";
import { got, goodChat, posted } from "./sent.ts";

const ok: Told = { status: 200 };
const bad: Told = { status: 400, code: "bad_request" };
const noKey: Told = { status: 401, code: "key_invalid" };
const wrongType: Told = { status: 415, code: "unsupported_media_type" };
const nowhere: Told = { status: 404, code: "unknown_url" };
const noModel: Told = { status: 404, code: "model_not_found", param: "model" };

const tooLarge: readonly Case[] = [
  {
    rows: [45],
    what: "one header of 17 KB",
    sent: got("/v1/models", [`X-Long: ${"x".repeat(17_000)}`]),
    told: [{ status: 431, code: "headers_too_large", says: /headersBytesMax/ }],
    afterwards: "closed",
  },
  {
    rows: [45],
    what: "one header of 60 KB",
    sent: got("/v1/models", [`X-Long: ${"x".repeat(60_000)}`]),
    told: [{ status: 431, code: "headers_too_large", says: /headersBytesMax/ }],
    afterwards: "closed",
  },
  {
    rows: [46],
    what: "a URL of 20 KB",
    sent: got(`/v1/models/${"x".repeat(20_000)}`),
    told: [{ status: 414, code: "uri_too_long", says: /urlBytesMax/ }],
    afterwards: "closed",
  },
  {
    rows: [47],
    what: "2001 headers, and then the key",
    sent: ({ key }) =>
      `GET /v1/models HTTP/1.1\r\nHost: a\r\n${"a:b\r\n".repeat(2_001)}Authorization: Bearer ${key}\r\n\r\n`,
    told: [{ status: 431, code: "headers_too_large", says: /headerLinesMax/ }],
    afterwards: "closed",
  },
  {
    rows: [47],
    what: "101 headers",
    sent: got(
      "/v1/models",
      Array.from({ length: 99 }, (_, place) => `X-${place}: a`),
    ),
    told: [{ status: 431, code: "headers_too_large", says: /headerLinesMax/ }],
    afterwards: "closed",
  },
  {
    rows: [47],
    what: "no more than 100 of them",
    sent: got(
      "/v1/models",
      Array.from({ length: 98 }, (_, place) => `X-${place}: a`),
    ),
    told: [ok],
  },
];

const odd: readonly Case[] = [
  {
    rows: [48],
    what: "headers that are called as what objects have",
    sent: got("/v1/models", ["__proto__: a", "constructor: b", "hasOwnProperty: c"]),
    told: [ok],
  },
  {
    rows: [49],
    what: "two keys",
    sent: got("/v1/models", ["Authorization: Bearer another"]),
    told: [bad],
    afterwards: "closed",
  },
  {
    rows: [49],
    what: "the same key twice",
    sent: (keys) => got("/v1/models", [`authorization: Bearer ${keys.key}`])(keys),
    told: [bad],
    afterwards: "closed",
  },
  {
    rows: [50],
    what: "a key with a NUL",
    sent: () => "GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\0b\r\n\r\n",
    told: [bad],
    afterwards: "closed",
  },
  {
    rows: [50],
    what: "a key with a CR",
    sent: () => "GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\rb\r\n\r\n",
    told: [bad],
    afterwards: "closed",
  },
  {
    rows: [50],
    what: "a key with a LF",
    sent: () => "GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\nb\r\n\r\n",
    told: [bad],
    afterwards: "closed",
  },
  {
    rows: [50],
    what: "a key with letters beyond ASCII",
    sent: () => "GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer caf\xe9\r\n\r\n",
    told: [noKey],
  },
  {
    rows: [51],
    what: "two content types",
    sent: posted(goodChat, { headers: ["Content-Type: text/plain"] }),
    told: [bad],
    afterwards: "closed",
  },
];

const mediaTypes: readonly Case[] = [
  { rows: [52], what: "no content type", sent: posted(goodChat, { type: "" }), told: [wrongType] },
  ...(
    [
      [53, "text/plain"],
      [54, "application/xml"],
      [55, "application/json\ta"],
      [57, "application/json garbage"],
      [57, "application/json; garbage"],
      [57, "application/json, text/plain"],
      [57, "application/jsonp"],
      [57, "application"],
      [58, "application/json;charset=utf-16"],
      [58, "application/json; charset=utf-8; charset=utf-16"],
      [58, 'application/json; charset="latin1"'],
      [58, "application/json; x=y; charset = utf-16"],
      [59, "multipart/form-data; boundary=a"],
      [59, "application/x-www-form-urlencoded"],
    ] as const
  ).map(([row, type]): Case => ({
    rows: [row],
    what: `a body as ${type}`,
    sent: posted(goodChat, { type }),
    told: [wrongType],
  })),
  ...[
    " application/json",
    "Application/JSON",
    'application/json ; charset="UTF-8"',
    "application/json; charset=utf8",
    "application/json;",
  ].map((type): Case => ({
    rows: [56],
    what: `a body as ${type} is read as JSON`,
    sent: posted(goodChat, { type: ` ${type}` }),
    told: [ok],
  })),
  {
    rows: [56],
    what: "and judged as JSON",
    sent: posted("{", { type: "   application/json" }),
    told: [{ status: 400, code: null }],
  },
  ...["gzip", "br", "deflate", "identity, gzip"].map((coding): Case => ({
    rows: [60],
    what: `a body packed by ${coding}`,
    sent: posted(goodChat, { headers: [`Content-Encoding: ${coding}`] }),
    told: [wrongType],
  })),
  {
    rows: [61],
    what: "who would rather have a picture gets JSON",
    sent: got("/v1/models", ["Accept: image/png"]),
    told: [{ ...ok, headers: { "content-type": /^application\/json/ } }],
  },
];

const claims = [
  "X-Forwarded-For: 10.0.0.1",
  "X-Forwarded-Host: evil.example",
  "X-Forwarded-Proto: https",
  "Forwarded: for=10.0.0.1",
  "X-Real-IP: 10.0.0.1",
];

const ignored: readonly Case[] = [
  { rows: [62], what: "claims about the way here change nothing", sent: got("/v1/models", claims), told: [ok] },
  {
    rows: [62],
    what: "claims about the way here are no key",
    sent: () => `GET /v1/models HTTP/1.1\r\nHost: a\r\n${claims.join("\r\n")}\r\n\r\n`,
    told: [noKey],
  },
  {
    rows: [63],
    what: "another method than the method",
    sent: got("/v1/models", ["X-HTTP-Method-Override: DELETE", "X-Method-Override: POST"]),
    told: [{ ...ok, says: /"object":"list"/ }],
  },
  ...["a\r\n b", "x".repeat(10_000), 'a"b', "req_mine"].map((id): Case => ({
    rows: [69],
    what: `an x-request-id of the caller's, ${id.length} characters long, beginning ${JSON.stringify(id.slice(0, 3))}`,
    sent: got("/v1/models", [`X-Request-Id: ${id}`]),
    told: [id.includes("\n") ? bad : { ...ok, headers: { "x-request-id": /^req_\w{22}$/ } }],
    afterwards: id.includes("\n") ? "closed" : "open",
    unlogged: new RegExp(`"request":"${id.slice(0, 8)}`),
  })),
  {
    rows: [71],
    what: "a traceparent that is none",
    sent: posted(goodChat, { headers: [`traceparent: ${"garbage;\xff".repeat(40)}`] }),
    told: [ok],
  },
  {
    rows: [72],
    what: "a cookie",
    sent: got("/v1/models", ["Cookie: key=a; session=b"]),
    told: [{ ...ok, headers: { "set-cookie": null } }],
  },
];

const urls: readonly Case[] = [
  ...[
    "/v1/../admin",
    "/v1/../admin/v1/keys",
    "//v1/models",
    "/V1/models",
    "/v1/models/../models",
    "/v1//models",
    "/admin/v1/keys",
    "/v1",
  ].map((path): Case => ({
    rows: [64],
    what: path,
    sent: got(path),
    told: [path.startsWith("/v1/models/") ? noModel : nowhere],
  })),
  ...["/v1/models/%00", "/v1/models/scripted%00", "/v1/models/a%0d%0aX-A:b", "/v1/models?a=%1f"].map((path): Case => ({
    rows: [65],
    what: path,
    sent: got(path),
    told: [bad],
    afterwards: "closed",
  })),
  { rows: [65], what: "a way up within an id", sent: got("/v1/models/%2e%2e%2fadmin"), told: [noModel] },
  {
    rows: [65],
    what: "a way up within an id that is encoded twice",
    sent: got("/v1/models/%252e%252e%252f"),
    told: [noModel],
  },
  ...["/v1/models/%ff", "/v1/models/%zz", "/v1/models/%", "/%E0%A4%A"].map((path): Case => ({
    rows: [66],
    what: path,
    sent: got(path),
    told: [bad],
  })),
  {
    rows: [66],
    what: "a body of a terabyte to a URL that cannot be read",
    sent: () => "POST /v1/models/%zz HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000\r\n\r\n",
    told: [bad],
    afterwards: "closed",
  },
  { rows: [67], what: "an id of 101 characters", sent: got(`/v1/models/${"x".repeat(101)}`), told: [noModel] },
  {
    rows: [67],
    what: "an id of 9000 characters",
    sent: got(`/v1/models/${"x".repeat(9_000)}`),
    told: [{ status: 414, code: "uri_too_long" }],
    afterwards: "closed",
  },
  {
    rows: [68],
    what: "a key in the query",
    sent: ({ key }) => `GET /v1/models?api_key=${key}&key=canary-in-a-query HTTP/1.1\r\nHost: a\r\n\r\n`,
    told: [noKey],
    unlogged: /canary-in-a-query|api_key/,
  },
  {
    rows: [68],
    what: "a key in the path of nothing",
    sent: (keys) => got(`/v1/chat/${keys.key}`)(keys),
    told: [nowhere],
  },
  {
    rows: [68],
    what: "a key in a path",
    sent: (keys) => got(`/v1/models/${keys.key}`)(keys),
    told: [noModel],
  },
  {
    rows: [70],
    what: "a browser that asks whether it may",
    sent: () =>
      "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: a\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n",
    told: [{ status: 405, code: "method_not_allowed", headers: { "access-control-allow-origin": null } }],
  },
  {
    rows: [70],
    what: "a browser that does not ask",
    sent: got("/v1/models", ["Origin: https://evil.example"]),
    told: [{ ...ok, headers: { "access-control-allow-origin": null } }],
  },
];

export const headers: Section = {
  title: "headers, URLs and media types",
  cases: [...tooLarge, ...odd, ...mediaTypes, ...ignored, ...urls],
};
