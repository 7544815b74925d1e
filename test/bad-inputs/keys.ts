import { withAnotherSecret } from "../harness/another-secret.ts";
import { mintKeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import type { Case, KeysOfTheTest, Section, Told } from "./row.ts";

/** Whatever is wrong with a key, the holder of a wrong one learns the same. */
const invalid: Told = { status: 401, code: "key_invalid" };
const expired: Told = { status: 401, code: "key_expired" };

/** A request for the models with this Authorization header, or with none. */
function authorized(header: string | undefined): string {
  return `GET /v1/models HTTP/1.1\r\nHost: a\r\n${header === undefined ? "" : `Authorization: ${header}\r\n`}\r\n`;
}

function refused(row: number, what: string, header: (keys: KeysOfTheTest) => string | undefined): Case {
  return { rows: [row], what, sent: (keys) => authorized(header(keys)), told: [invalid] };
}

function anotherSecret(key: string): string {
  const parsed = parseKeyToken(key);
  if (parsed.outcome !== "parsed") throw new Error(`no key: ${parsed.outcome}`);
  return withAnotherSecret(parsed.token);
}

const misspelt = (key: string): string => key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");

const wrong: readonly Case[] = [
  refused(73, "no header", () => undefined),
  refused(74, "another scheme", ({ key }) => `Basic ${Buffer.from(`user:${key}`).toString("base64")}`),
  refused(74, "a key without a scheme", ({ key }) => key),
  refused(75, "a scheme without a key", () => "Bearer"),
  refused(75, "a scheme and a space", () => "Bearer "),
  refused(75, "two spaces", ({ key }) => `Bearer  ${key}`),
  refused(75, "a tab for a space", ({ key }) => `Bearer\t${key}`),
  {
    rows: [75],
    what: "a scheme in small letters is one",
    sent: ({ key }) => authorized(`bearer ${key}`),
    told: [{ status: 200 }],
  },
  refused(76, "a key of another house", () => "Bearer sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"),
  refused(77, "a key with a slip of the pen", ({ key }) => `Bearer ${misspelt(key)}`),
  refused(78, "a key that nobody issued", () => `Bearer ${mintKeyToken().reveal()}`),
  refused(79, "a known id with another secret", ({ key }) => `Bearer ${anotherSecret(key)}`),
  refused(
    80,
    "a known id with the secret of another key",
    ({ key, narrow }) => `Bearer ${key.slice(0, 23)}${narrow.slice(23)}`,
  ),
  refused(81, "a word after the key", ({ key }) => `Bearer ${key} x`),
  refused(81, "a space that nobody sees", ({ key }) => `Bearer ${key}\xe2\x80\x8b`),
  refused(81, "a letter that looks like another", ({ key }) => `Bearer ${key.replace("r", "\xd0\xb3")}`),
  {
    rows: [81],
    what: "spaces at the end belong to the header and not to the key",
    sent: ({ key }) => authorized(`Bearer ${key}  `),
    told: [{ status: 200 }],
  },
  refused(82, "a key of 4 KB", ({ key }) => `Bearer ${key.padEnd(4_096, "x")}`),
  refused(82, "a key of 15 KB", ({ key }) => `Bearer ${key.padEnd(15_000, "x")}`),
  refused(87, "a key that was taken back", ({ revoked }) => `Bearer ${revoked}`),
  refused(
    88,
    "a key that was taken back, and then its time was over",
    ({ revokedAndExpired }) => `Bearer ${revokedAndExpired}`,
  ),
  refused(86, "a key whose time is over, with another secret", ({ expired: key }) => `Bearer ${anotherSecret(key)}`),
  ...["' OR '1'='1", "'OR'1'='1", "*", "key:*", "trunkline:key:*", "../../etc/passwd", "%00", "$(id)"].map((text) =>
    refused(89, `a key that would be a command: ${text}`, () => `Bearer ${text}`),
  ),
  {
    rows: [89],
    what: "a key that would be two lines",
    sent: () => authorized("Bearer a\r\nFLUSHALL"),
    told: [{ status: 400, code: "bad_request" }],
    afterwards: "closed",
  },
  refused(
    90,
    "a key that begins as one that is known",
    ({ key }) => `Bearer ${key.slice(0, 20)}${"x".repeat(key.length - 20)}`,
  ),
  refused(90, "half a key that is known", ({ key }) => `Bearer ${key.slice(0, 20)}`),
];

const over: readonly Case[] = [
  {
    rows: [83],
    what: "a key whose time is over",
    sent: ({ expired: key }) => authorized(`Bearer ${key}`),
    told: [expired],
  },
  {
    rows: [84, 85],
    what: "a key whose time is long over",
    sent: ({ expiredLongAgo }) => authorized(`Bearer ${expiredLongAgo}`),
    told: [expired],
  },
];

const chatWith = (model: string): Case["sent"] => {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "/script tokens=1" }] });
  const rest = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  return ({ narrow }) =>
    Buffer.from(`POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${narrow}\r\n${rest}`);
};
const noModel: Told = { status: 404, code: "model_not_found", param: "model" };

const scopes: readonly Case[] = [
  refused(91, "an admin's key for the models", ({ admin }) => `Bearer ${admin}`),
  {
    rows: [91],
    what: "the admin's doors are not on this port",
    sent: ({ admin }) => `GET /admin/v1/keys HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${admin}\r\n\r\n`,
    told: [{ status: 404, code: "unknown_url" }],
  },
  ...[
    "scripted",
    "Scripted:plain",
    "scripted/../scripted:plain",
    "scr\u0456pted:plain",
    "scripted:*",
    "*",
    "absent",
  ].map((model): Case => ({
    rows: model === "scripted" ? [92] : [93],
    what: `${model}, which is no model of this key`,
    sent: chatWith(model),
    told: [noModel],
  })),
  {
    rows: [94],
    what: "the list has the models of the key and no others",
    sent: ({ narrow }) => authorized(`Bearer ${narrow}`),
    told: [{ status: 200, says: /"id":"scripted:plain"/, saysNot: /"id":"scripted"/ }],
  },
  ...["GET", "DELETE", "POST"].map((method): Case => ({
    rows: [95],
    what: `${method} for somebody's answer`,
    sent: ({ key }) =>
      `${method} /v1/chat/completions/chatcmpl-1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    told: [{ status: 404, code: "unknown_url" }],
  })),
];

export const keys: Section = {
  title: "keys",
  cases: [...wrong, ...over, ...scopes],
};
