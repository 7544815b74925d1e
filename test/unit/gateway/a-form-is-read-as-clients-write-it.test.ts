import { expect, test } from "vitest";
import { FormFile, readForm } from "../../../services/gateway/http/read-form.ts";
import { formBoundary } from "../../../services/gateway/http/guard-edge.ts";

const boundary = "b0undary";
const field = (...head: string[]): string => `--${boundary}\r\n${head.join("\r\n")}\r\n\r\nm\r\n`;
const file = (...head: string[]): string => `--${boundary}\r\n${head.join("\r\n")}\r\n\r\n\0\xff\r\n--\r\n\r\n`;
const named = (name: string): string => `Content-Disposition: form-data; name="${name}"`;

/** The heads of a field and of a file, as the clients were seen to write them. */
const clients: readonly (readonly [client: string, field: string, file: string, filename: string])[] = [
  [
    "curl 7.88, and browsers",
    field(named("model")),
    file(`${named("file")}; filename="a%22b.wav"`, "Content-Type: audio/wav"),
    "a%22b.wav",
  ],
  [
    "requests 2.32 and httpx 0.28",
    field(named("model")),
    file(`${named("file")}; filename="a b.wav"`, "Content-Type: audio/wav"),
    "a b.wav",
  ],
  [
    "aiohttp 3.13",
    field("Content-Type: text/plain; charset=utf-8", named("model")),
    file("Content-Type: audio/wav", `${named("file")}; filename="a.wav"`),
    "a.wav",
  ],
  [
    ".NET",
    field("Content-Type: text/plain; charset=utf-8", "Content-Disposition: form-data; name=model"),
    file(
      "Content-Type: audio/wav",
      "Content-Disposition: form-data; name=file; filename=a.wav; filename*=utf-8''a.wav",
    ),
    "a.wav",
  ],
  [
    "OkHttp",
    field(named("model"), "Content-Length: 1"),
    file(`${named("file")}; filename="a.wav"`, "Content-Type: audio/wav", "Content-Length: 8"),
    "a.wav",
  ],
  ["Go", field(named("model")), file(`${named("file")}; filename="a\\"b.wav"`, "Content-Type: audio/wav"), 'a"b.wav'],
];

test.each(clients)("a form of %s has its field and its file byte for byte", (_, model, recording, filename) => {
  const bytes = Buffer.from(`${model}${recording}--${boundary}--\r\n`, "latin1");
  const form = readForm(bytes, boundary);
  expect(form["model"]).toBe("m");
  const read = form["file"];
  if (!(read instanceof FormFile)) throw expect.fail("the file is none");
  expect([read.name, read.type]).toEqual([filename, "audio/wav"]);
  expect(Buffer.from(read.bytes).toString("latin1")).toBe("\0\xff\r\n--\r\n");
  expect(read.bytes.buffer).toBe(bytes.buffer);
});

test.each([
  ["a bare line feed behind spaces", `X-A:${" ".repeat(900)}\n`],
  ["a NUL", "X-A: a\0b"],
  ["a carriage return in a file name", `${named("file")}; filename="a\rb.wav"`],
])("a form with %s in the headers of its parts is refused, and costs little", (_, line) => {
  const parts = Array.from({ length: 60 }, (__, place) => field(named(`f${place}`), line)).join("");
  expect(() => readForm(Buffer.from(`${parts}--${boundary}--\r\n`, "latin1"), boundary)).toThrow(/control character/);
});

test("a form with long runs of spaces around a value has the value alone", () => {
  const spaces = " ".repeat(400);
  const form = readForm(
    Buffer.from(`${field(`Content-Disposition:${spaces}form-data; name="a"${spaces}`)}--${boundary}--\r\n`),
    boundary,
  );
  expect(form).toEqual({ a: "m" });
});

test.each([
  "multipart/form-data; boundary=a-b.c'd",
  'Multipart/Form-Data;boundary="a-b.c\'d"',
  "multipart/form-data; charset=utf-8; boundary=a-b.c'd",
])("the boundary is found in %s", (type) => {
  expect(formBoundary({ "content-type": type })).toBe("a-b.c'd");
});

test.each([
  "multipart/form-data; boundary=a; boundary=b",
  "multipart/form-data; boundary=",
  "multipart/mixed; boundary=a",
  'multipart/form-data; boundary="a\r\n"',
])("the boundary is refused in %j", (type) => {
  expect(() => formBoundary({ "content-type": type })).toThrow(/boundary/);
});
