import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { AnswerAssembly } from "../../../services/agent/jobs/run-job.ts";
import { regular, runtimeEvents } from "./answers.ts";
import { finish as stop, given, says, thinks, usage } from "./events.ts";

const call: AnswerEvent = { kind: "tool-call-start", index: 0, name: "weather", id: "call_1" };

function idsOf(events: readonly AnswerEvent[]): string[] {
  return events.flatMap((event) => (event.kind === "tool-call-start" ? [event.id ?? "none"] : []));
}

test("an answer made regular has no empty text, reasoning or arguments, and all the rest as it came", () => {
  const said = [thinks("hm"), thinks(""), says("a"), says(""), call, given(0, ""), given(0, "{}")];
  expect(new AnswerAssembly().push(said)).toEqual([said[0], said[2], call, said[6]]);
});

test("an answer made regular keeps the runtime's ids where each is one call's own, and gives an id to every other call", () => {
  const ids = ["call_1", undefined, "", "call_1", "call_2"];
  const calls = ids.map((id, index) => ({ ...call, index, id }));
  const made = idsOf(new AnswerAssembly().push(calls));
  expect(made).toEqual(["call_1", expect.anything(), expect.anything(), expect.anything(), "call_2"]);
  expect(new Set(made).size).toBe(5);
  for (const id of made) expect(id).toMatch(/^call_\w+$/);
});

test("an answer made regular ends with one finish and then at most one usage, whatever the runtime said when", () => {
  fc.assert(
    fc.property(runtimeEvents, fc.nat(5), (events, rotation) => {
      // Runtimes may tell usage and finish early, and more than once.
      const closing = events.filter(({ kind }) => kind === "finish" || kind === "usage");
      const all = regular([...closing.slice(rotation % closing.length), ...events]);
      const kinds = all.map(({ kind }) => kind);
      const tail = closing.length === 2 ? ["finish", "usage"] : ["finish"];
      expect(kinds.slice(-tail.length)).toEqual(tail);
      expect(kinds.slice(0, -tail.length)).not.toContain("finish");
      expect(kinds.slice(0, -tail.length)).not.toContain("usage");
      expect(all.at(tail.length === 2 ? -1 : all.length)).toEqual(closing[1]);
    }),
  );
});

test.each(["stop", "length", "content_filter"] as const)(
  "an answer made regular that finished by %s without calls says so",
  (reason) => {
    expect(regular([{ kind: "finish", reason }])).toEqual([{ kind: "finish", reason }]);
  },
);

test("an answer made regular names the stop string that ended it only to a gateway that asks for it", () => {
  const ended: AnswerEvent = { kind: "finish", reason: "stop", stop: "END" };
  for (const tellsStop of [true, false]) {
    const assembly = new AnswerAssembly({ tellsStop });
    assembly.push([ended]);
    expect(assembly.end()).toEqual([tellsStop ? ended : stop]);
  }
});

test.each([
  ["stop", "tool_calls"],
  ["tool_calls", "tool_calls"],
  ["length", "length"],
  ["content_filter", "content_filter"],
] as const)(
  "an answer made regular that finished by %s after calls says %s, also when the finish came first",
  (reason, told) => {
    const finish: AnswerEvent = { kind: "finish", reason };
    expect(regular([call, finish]).at(-1)).toEqual({ kind: "finish", reason: told });
    expect(regular([finish, call]).at(-1)).toEqual({ kind: "finish", reason: told });
  },
);

test("an answer made regular counts a piece of output as a token until the runtime tells the number", () => {
  const assembly = new AnswerAssembly();
  assembly.push([says("a"), thinks("b"), says(""), call]);
  assembly.push([given(0, "{}")]);
  expect(assembly.outputTokens).toBe(3);
  assembly.push([{ kind: "usage", promptTokens: 1, completionTokens: 40 }]);
  expect(assembly.outputTokens).toBe(40);
});

test("an answer is a fault of the runtime when it ends without a finish, however much it said", () => {
  const assembly = new AnswerAssembly();
  assembly.push([says("secret"), usage]);
  expect(() => assembly.end()).toThrow(expect.objectContaining({ code: "upstream_error" }));
});

test.each<[string, AnswerEvent[]]>([
  ["arguments come without a start", [given(0, "secret")]],
  ["arguments come for another call", [call, given(1, "secret")]],
  ["a call starts twice", [call, { ...call, name: "secret", id: "call_2" }]],
])("an answer is a fault of the runtime when %s, and the fault does not repeat what it said", (_, events) => {
  const fault = expect.objectContaining({
    code: "upstream_error",
    message: expect.not.stringContaining("secret"),
    internal: expect.not.stringContaining("secret"),
  });
  expect(() => new AnswerAssembly().push([...events, stop])).toThrow(fault);
});
