import * as fc from "fast-check";
import { expect, test } from "vitest";
import { toolNamePattern, type ChatBody } from "#shared/protocol/job-bodies.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { readRequest } from "../../harness/read-requests.ts";
import { nameToolsForMachines, withClientNames } from "../../../services/gateway/chats/request-tools.ts";

const tool = (name: string) => ({ type: "function" as const, function: { name } });
const offering = (...names: string[]): ChatBody => ({
  messages: [{ role: "user", content: "Hi" }],
  tools: names.map(tool),
});
const machineNames = (...names: string[]): string[] =>
  (nameToolsForMachines(offering(...names)).body.tools ?? []).map((each) => each.function.name);

test("a request whose names all machines take stays as it is", () => {
  const body = offering("read_file", "mcp__files__read");
  expect(nameToolsForMachines(body)).toEqual({ body });
  expect(nameToolsForMachines(body).body).toBe(body);
});

test.each([
  ["files.read", "files_read"],
  ["files/read:all", "files_read_all"],
  ["read a file", "read_a_file"],
  ["lies🐈", "lies_"],
])("a tool '%s' is '%s' to a machine", (name, machineName) => {
  expect(machineNames(name, "other")).toEqual([machineName, "other"]);
});

test("a name that is too long, or would be like another's, ends in a hash", () => {
  const [long = "", dotted = "", plain, slashed = ""] = machineNames("x".repeat(65), "a.b", "a_b", "a/b");
  expect(long).toMatch(/^x{55}_[0-9a-f]{8}$/);
  expect([dotted, plain, slashed]).toEqual([
    expect.stringMatching(/^a_b_[0-9a-f]{8}$/),
    "a_b",
    expect.stringMatching(/^a_b_[0-9a-f]{8}$/),
  ]);
  expect(dotted).not.toBe(slashed);
  expect(machineNames("a/b", "a_b", "a.b", "x".repeat(65))).toEqual([slashed, plain, dotted, long]);
});

test("any names become different names that machines take, and each is mapped back", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ minLength: 1, maxLength: 80, unit: "grapheme" })), (names) => {
      const { body, toolNames } = nameToolsForMachines(offering(...names));
      const inner = (body.tools ?? []).map((each) => each.function.name);
      expect(inner.every((name) => toolNamePattern.test(name))).toBe(true);
      expect(new Set(inner).size).toBe(names.length);
      expect(inner.map((name) => toolNames?.get(name) ?? name)).toEqual(names);
    }),
  );
});

test("the choice and the earlier calls have the same names as the tools", () => {
  const call = (name: string) => ({ id: name, type: "function" as const, function: { name, arguments: "{}" } });
  const { body } = nameToolsForMachines({
    ...offering("files.read", "wait"),
    tool_choice: tool("files.read"),
    messages: [{ role: "assistant", tool_calls: [call("files.read"), call("wait"), call("gone.away")] }],
  });
  expect(body.tool_choice).toEqual(tool("files_read"));
  expect(body.messages).toMatchObject([
    { tool_calls: [{ id: "files.read", function: { name: "files_read" } }, call("wait"), call("gone.away")] },
  ]);
});

const { toolNames } = nameToolsForMachines(offering("files.read"));
const start = (name: string): AnswerEvent => ({ kind: "tool-call-start", index: 0, id: "c", name });

test("the client's names of tools are back in every call of an answer, and other names stay as the model wrote them", () => {
  const seen: AnswerEvent[] = [];
  const renderer = {
    push(events: readonly AnswerEvent[]) {
      seen.push(...events);
      return new Uint8Array();
    },
    end: () => new Uint8Array(),
  };
  const text: AnswerEvent = { kind: "text", text: "files_read" };
  withClientNames(renderer, toolNames).push([text, start("files_read"), start("constructor")]);
  expect(seen).toEqual([text, start("files.read"), start("constructor")]);
  expect(withClientNames(renderer, undefined)).toBe(renderer);
});

test.each([
  ["chat", { messages: [{ role: "user", content: "Hi" }], tools: [tool("files.read")] }],
  ["response", { input: "Hi", tools: [{ type: "function", name: "files.read" }] }],
] as const)("a request of the kind %s brings them with it, and sends a machine its own", (outer, fields) => {
  const read = readRequest(outer, Buffer.from(JSON.stringify({ model: "llama3", ...fields })));
  expect(read.form.toolNames).toEqual(new Map([["files_read", "files.read"]]));
  expect(JSON.parse(Buffer.from(read.body).toString())).toMatchObject({ tools: [tool("files_read")] });
});
