import type { Case, Section, Told } from "./row.ts";
import { got, goodChat, posted } from "./sent.ts";

const bad: Told = { status: 400, code: "bad_request" };
const ok: Told = { status: 200 };

/** A POST to the chats by the holder of a key, with these header lines and then these bytes. */
function post(lines: string, rest = ""): Case["sent"] {
  const type = "Content-Type: application/json";
  return ({ key }) =>
    `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n${type}\r\n${lines}\r\n\r\n${rest}`;
}

function get(lines: string, version = "HTTP/1.1"): Case["sent"] {
  return ({ key }) => `GET /v1/models ${version}\r\nAuthorization: Bearer ${key}\r\n${lines}\r\n\r\n`;
}

/** A body in chunks, as it stands on the wire. */
function chunked(chunks: string): Case["sent"] {
  return post("Transfer-Encoding: chunked", chunks);
}

const length = Buffer.byteLength(goodChat);
const goodChunk = `${length.toString(16)}\r\n${goodChat}\r\n`;
const closing = { told: [bad], afterwards: "closed" } as const;

/** Where a request ends, and what a line is: whatever could be read in two ways is not read at all. */
const lengths: readonly Case[] = [
  {
    rows: [1],
    what: "two ways to say where it ends",
    sent: post("Content-Length: 3\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
    ...closing,
  },
  {
    rows: [2],
    what: "two lengths that differ",
    sent: post(`Content-Length: ${length}\r\nContent-Length: 3`, goodChat),
    ...closing,
  },
  {
    rows: [3],
    what: "the same length twice",
    sent: post(`Content-Length: ${length}\r\nContent-Length: ${length}`, goodChat),
    ...closing,
  },
  { rows: [4], what: "a length with a sign", sent: post(`Content-Length: +${length}`, goodChat), ...closing },
  { rows: [5], what: "a length below nothing", sent: post("Content-Length: -1"), ...closing },
  { rows: [6], what: "a list of lengths", sent: post(`Content-Length: ${length}, ${length}`, goodChat), ...closing },
  { rows: [7], what: "a length in base 16", sent: post("Content-Length: 0x5", "12345"), ...closing },
  { rows: [8], what: "a length of 2 to the 64", sent: post("Content-Length: 18446744073709551616"), ...closing },
  { rows: [8], what: "a length that is no number", sent: post("Content-Length: many"), ...closing },
  {
    rows: [9],
    what: "a length of a terabyte",
    sent: post("Content-Length: 1000000000000"),
    told: [{ status: 413, code: "request_too_large", says: /TRUNKLINE_BODY_BYTES_MAX/ }],
    afterwards: "closed",
  },
  {
    rows: [10],
    what: "a transfer coding that nobody knows",
    sent: post("Transfer-Encoding: xchunked", goodChunk),
    ...closing,
  },
  {
    rows: [11],
    what: "chunked, and then a coding that is none",
    sent: post("Transfer-Encoding: chunked, identity", goodChunk),
    ...closing,
  },
  {
    rows: [12],
    what: "a body that is packed in transfer",
    sent: post("Transfer-Encoding: gzip, chunked", `${goodChunk}0\r\n\r\n`),
    ...closing,
  },
  {
    rows: [12],
    what: "chunked twice",
    sent: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", `${goodChunk}0\r\n\r\n`),
    ...closing,
  },
  {
    rows: [13],
    what: "a space before the colon",
    sent: post("Transfer-Encoding : chunked", `${goodChunk}0\r\n\r\n`),
    ...closing,
  },
  {
    rows: [14],
    what: "a header that goes on in the next line",
    sent: post("Transfer-Encoding:\r\n chunked", `${goodChunk}0\r\n\r\n`),
    ...closing,
  },
  { rows: [20], what: "a chunk of more than 2 to the 64", sent: chunked(`1${"0".repeat(17)}\r\n`), ...closing },
  { rows: [21], what: "the size of a chunk with a prefix", sent: chunked("0x3\r\nabc\r\n0\r\n\r\n"), ...closing },
  {
    rows: [22],
    what: "the size of a chunk in a line that ends in LF alone",
    sent: chunked("3\nabc\r\n0\r\n\r\n"),
    ...closing,
  },
  {
    rows: [23],
    what: "a chunk with 20 KB of extensions",
    sent: chunked(`3;${"x".repeat(20_000)}\r\nabc\r\n0\r\n\r\n`),
    ...closing,
  },
  { rows: [24], what: "a chunk that is longer than it says", sent: chunked("3\r\nabcdef\r\n0\r\n\r\n"), ...closing },
];

const lines: readonly Case[] = [
  {
    rows: [15],
    what: "lines that end in LF alone",
    sent: ({ key }) => `GET /v1/models HTTP/1.1\nHost: a\nAuthorization: Bearer ${key}\n\n`,
    ...closing,
  },
  { rows: [16], what: "a CR within a value", sent: get("Host: a\r\nX-A: b\rc"), ...closing },
  { rows: [17], what: "a NUL within a value", sent: get("Host: a\r\nX-A: b\0c"), ...closing },
  { rows: [18], what: "a header without a colon", sent: get("Host: a\r\nnothing to be told"), ...closing },
  { rows: [19], what: "a header without a name", sent: get("Host: a\r\n: nameless"), ...closing },
  {
    rows: [25],
    what: "a trailer that would be another key",
    sent: chunked(`${goodChunk}0\r\nAuthorization: Bearer nobody\r\n\r\n`),
    told: [ok],
  },
  {
    rows: [25],
    what: "a trailer that would be another length",
    sent: chunked(`${goodChunk}0\r\nContent-Length: 5\r\n\r\n`),
    ...closing,
  },
  {
    rows: [26],
    what: "bytes after the end of a request that was served",
    sent: (keys) => `${posted(goodChat)(keys).toString("latin1")}that is all`,
    told: [{ ...ok, says: /token-0/ }, bad],
    afterwards: "closed",
  },
  {
    rows: [26],
    what: "bytes after the end of one that was refused",
    sent: (keys) => `${posted("{")(keys).toString("latin1")}?`,
    told: [{ status: 400, code: null }, bad],
    afterwards: "closed",
  },
];

const greetings: readonly Case[] = [
  { rows: [27], what: "no Host", sent: get("X-A: b"), ...closing },
  { rows: [28], what: "two Hosts", sent: get("Host: a\r\nHost: b"), ...closing },
  ...["a/v1/health?", "a?b", "a#b", "user@a", "a b", "a\\b", "a:b", "a:80:80", '"a"', "[::1"].map((host): Case => ({
    rows: [29],
    what: `a Host that reads ${host}`,
    sent: get(`Host: ${host}`),
    ...closing,
  })),
  ...["a", "a.b:8080", "127.0.0.1:80", "[::1]:8080", "under_scored.a"].map((host): Case => ({
    rows: [29],
    what: `no bad one, which is ${host}`,
    sent: get(`Host: ${host}`),
    told: [ok],
  })),
  { rows: [30], what: "HTTP/0.9", sent: () => "GET /v1/models\r\n\r\n", ...closing },
  {
    rows: [31],
    what: "HTTP/1.0 is served without a Host, and its connection closed",
    sent: get("X-A: b", "HTTP/1.0"),
    told: [ok],
    afterwards: "closed",
  },
  {
    rows: [10, 31],
    what: "HTTP/1.0 in chunks, of which an older reader sees another end",
    sent: () =>
      "POST /v1/chat/completions HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ...closing,
  },
  { rows: [32], what: "HTTP/1.2", sent: get("Host: a", "HTTP/1.2"), ...closing },
  { rows: [32], what: "HTTP/2.0 as text", sent: get("Host: a", "HTTP/2.0"), ...closing },
  { rows: [33], what: "the preface of HTTP/2", sent: () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ...closing },
  { rows: [34], what: "the hello of TLS", sent: () => Buffer.from("16030100c8010000c40303", "hex"), ...closing },
  { rows: [34], what: "what is no HTTP", sent: () => "Hello, is anybody there?\r\n\r\n", ...closing },
  {
    rows: [35],
    what: "a method in small letters",
    sent: () => "get /v1/models HTTP/1.1\r\nHost: a\r\n\r\n",
    ...closing,
  },
  {
    rows: [35],
    what: "a method that nobody knows",
    sent: () => "FOO /v1/models HTTP/1.1\r\nHost: a\r\n\r\n",
    ...closing,
  },
];

const notAllowed: Told = { status: 405, code: "method_not_allowed" };

const ways: readonly Case[] = [
  {
    rows: [36],
    what: "CONNECT",
    sent: () => "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
    told: [{ ...notAllowed, headers: { allow: "GET, HEAD, POST" } }],
    afterwards: "closed",
  },
  {
    rows: [36],
    what: "CONNECT behind a request, whose answer comes first",
    sent: (keys) =>
      Buffer.concat([Buffer.from(posted(goodChat)(keys)), Buffer.from("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n")]),
    told: [{ status: 200, says: /token-0/ }, notAllowed],
    afterwards: "closed",
  },
  ...["TRACE", "OPTIONS", "QUERY", "PROPFIND", "PUT", "DELETE"].map((method): Case => ({
    rows: [37],
    what: `${method} where there is another method`,
    sent: () => `${method} /v1/models HTTP/1.1\r\nHost: a\r\n\r\n`,
    told: [{ ...notAllowed, headers: { allow: "GET, HEAD" } }],
  })),
  {
    rows: [37],
    what: "TRACE where there is nothing",
    sent: () => "TRACE /nothing HTTP/1.1\r\nHost: a\r\n\r\n",
    told: [{ status: 404, code: "unknown_url" }],
  },
  {
    rows: [37],
    what: "TRACE with a body where there is another method",
    sent: () => "TRACE /v1/models HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
    told: [{ ...notAllowed, headers: { allow: "GET, HEAD" } }],
  },
  {
    rows: [38],
    what: "a target with a host",
    sent: ({ key }) => `GET http://a/v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    ...closing,
  },
  { rows: [38], what: "a target that is no path", sent: () => "GET v1/models HTTP/1.1\r\nHost: a\r\n\r\n", ...closing },
  {
    rows: [39],
    what: "OPTIONS *",
    sent: () => "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    told: [{ status: 404, code: "unknown_url" }],
  },
  {
    rows: [40],
    what: "an upgrade to a websocket is refused at once",
    sent: got("/v1/models", [
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]),
    told: [{ status: 426, code: "upgrade_refused" }],
    afterwards: "closed",
  },
  {
    rows: [40],
    what: "an upgrade to HTTP/2 is ignored",
    sent: got("/v1/models", [
      "Connection: Upgrade, HTTP2-Settings",
      "Upgrade: h2c",
      "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
    ]),
    told: [ok],
  },
  {
    rows: [41],
    what: "whoever waits to be asked for a body, without a key, is not asked",
    sent: () =>
      `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\nExpect: 100-continue\r\n\r\n`,
    told: [{ status: 401, code: "key_invalid" }],
    afterwards: "closed",
  },
  {
    rows: [41],
    what: "whoever waits to be asked, with a key, is asked once",
    sent: posted(goodChat, { headers: ["Expect: 100-continue"] }),
    told: [{ status: 100 }, ok],
  },
  {
    rows: [41],
    what: "whoever waits to be asked for too much is not asked",
    sent: post("Content-Length: 1000000000\r\nExpect: 100-continue"),
    told: [{ status: 413, code: "request_too_large" }],
    afterwards: "closed",
  },
  {
    rows: [42],
    what: "an expectation that nobody can meet",
    sent: posted(goodChat, { headers: ["Expect: foo"] }),
    told: [{ status: 417, code: "expectation_failed" }],
    afterwards: "closed",
  },
  {
    rows: [43],
    what: "a thousand requests at once are answered in their order",
    sent: () =>
      Array.from({ length: 1_000 }, (_, place) => `GET /nothing/${place} HTTP/1.1\r\nHost: a\r\n\r\n`).join(""),
    told: Array.from({ length: 1_000 }, (_, place) => ({
      status: 404,
      code: "unknown_url",
      says: new RegExp(`/${place}\\.`),
    })),
  },
  { rows: [44], what: "a GET with a body", sent: got("/v1/models", ["Content-Length: 1048576"]), ...closing },
  {
    rows: [44],
    what: "a GET with a body in chunks",
    sent: got("/v1/models", ["Transfer-Encoding: chunked"]),
    ...closing,
  },
  {
    rows: [44],
    what: "a GET with a body where only POST is",
    sent: got("/v1/chat/completions", ["Content-Length: 1048576"]),
    told: [{ status: 405, code: "method_not_allowed" }],
    afterwards: "closed",
  },
];

export const framing: Section = {
  title: "framing",
  cases: [...lengths, ...lines, ...greetings, ...ways],
};
