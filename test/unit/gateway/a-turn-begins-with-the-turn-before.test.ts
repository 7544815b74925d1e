import * as fc from "fast-check";
import { expect, test } from "vitest";
import { contentText, type ChatBody, type ChatMessage } from "#shared/protocol/job-bodies.ts";
import { steadyPrompt } from "../../../services/gateway/chats/steady-prompt.ts";
import { readRequest } from "../../harness/read-requests.ts";

const user = (content: string): ChatMessage => ({ role: "user", content });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });
const system = (content: string): ChatMessage => ({ role: "system", content });
const result = (id: string, content = "42 lines"): ChatMessage => ({ role: "tool", tool_call_id: id, content });
const calls = (...ids: string[]): ChatMessage => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "read", arguments: "{}" } })),
});
const reminded = (text: string): string => `<system-reminder>\n${text}\n</system-reminder>`;

function folded(...messages: ChatMessage[]): ChatBody["messages"] {
  return steadyPrompt({ messages }, { foldsSystem: true }).body.messages;
}

const billing = "x-anthropic-billing-header: cc_version=2.1.37.0d9; cc_entrypoint=cli; cch=8e8fb;";
const prompt = "You are Claude Code.\nBe short.";

test.each([
  ["behind one message", user, reminded("b")],
  ["at the front", system, "b"],
])("thousands of system messages %s are folded in one walk", (_, before, text) => {
  // A copy of all for each message would take longer than a test may.
  const many = Array.from({ length: 40_000 }, () => system("b"));
  const [first, ...others] = folded(before("a".repeat(2_000_000)), ...many);
  expect(others).toEqual([]);
  expect(contentText(first?.content).split(text)).toHaveLength(many.length + 1);
});

const parts = (...texts: string[]) => texts.map((text) => ({ type: "text" as const, text }));
test.each<[string, Extract<ChatMessage, { role: "system" }>["content"]]>([
  ["as a block of its own", parts(billing, prompt)],
  ["joined to the prompt by a line break", `${billing}\n\n${prompt}`],
  ["joined to the prompt by nothing", `${billing}${prompt}`],
  ["inside the first block", parts(`${billing}\n${prompt}`)],
])("the billing line of Claude Code never reaches a model %s", (_, content) => {
  const { body, ignored } = steadyPrompt(
    { messages: [{ role: "system", content }, user("Hi")] },
    { foldsSystem: false },
  );
  expect(body.messages.map((message) => [message.role, contentText(message.content)])).toEqual([
    ["system", prompt],
    ["user", "Hi"],
  ]);
  expect(ignored).toEqual(["x-anthropic-billing-header"]);
});

test("the billing line of Claude Code never reaches a model nor does a system message that holds nothing else", () => {
  const { body } = steadyPrompt({ messages: [system(billing), user("Hi")] }, { foldsSystem: false });
  expect(body.messages).toEqual([user("Hi")]);
});

test("the billing line of Claude Code never reaches a model and millions of its pairs are no failure", () => {
  const messages = [system(`${billing}${"a=b;".repeat(7_000_000)}`), user("Hi")];
  expect(steadyPrompt({ messages }, { foldsSystem: false }).ignored).toEqual(["x-anthropic-billing-header"]);
});

test("the billing line of Claude Code never reaches a model and a chat's client reads of it in the header of ignored fields", () => {
  const messages = [system(`${billing}\n${prompt}`), user("Hi")];
  const read = readRequest("chat", Buffer.from(JSON.stringify({ model: "m", messages, user_id: 1 })));
  expect(read.ignored).toEqual(["user_id", "x-anthropic-billing-header"]);
  expect(Buffer.from(read.body).includes("billing")).toBe(false);
});

test("two requests that differ in the billing line only are the same prompt to a machine", () => {
  const [one, other] = ["8e8fb", "00000"].map((nonce) => {
    const messages = [system(billing.replace("8e8fb", nonce) + prompt.repeat(100)), user("Hi")];
    return readRequest("chat", Buffer.from(JSON.stringify({ model: "m", messages })));
  });
  expect(one?.needs.prompt).toEqual(other?.needs.prompt);
  expect(one?.body).toEqual(other?.body);
});

test("a user who writes about the billing header is not cut", () => {
  const messages = [system(prompt), user(`${billing} is what I see`)];
  expect(steadyPrompt({ messages }, { foldsSystem: true })).toEqual({ body: { messages }, ignored: [] });
});

const front = system("Be short.");
test.each<[string, ChatMessage[], ChatMessage[]]>([
  [
    "is one with that in front of all others",
    [front, system("And kind."), user("Hi")],
    [system("Be short.\n\nAnd kind."), user("Hi")],
  ],
  ["ends the user's message before it", [front, user("Hi"), system("Now")], [front, user(`Hi\n\n${reminded("Now")}`)]],
  [
    "ends the result before it, and makes no turn of the user",
    [user("Hi"), calls("a"), result("a"), system("9 tokens left")],
    [user("Hi"), calls("a"), result("a", `42 lines\n\n${reminded("9 tokens left")}`)],
  ],
  [
    "never comes between a call and its result",
    [user("Hi"), calls("a", "b"), system("Now"), result("a"), result("b")],
    [user("Hi"), calls("a", "b"), result("a", `${reminded("Now")}\n\n42 lines`), result("b")],
  ],
  [
    "begins the user's message after an answer",
    [user("Hi"), assistant("Hello"), system("Now"), system("Then"), user("Go on")],
    [user("Hi"), assistant("Hello"), user(`${reminded("Now")}\n\n${reminded("Then")}\n\nGo on`)],
  ],
  [
    "is a turn of the user between two answers",
    [user("Hi"), assistant("Hello"), system("Now"), assistant("Yes")],
    [user("Hi"), assistant("Hello"), user(reminded("Now")), assistant("Yes")],
  ],
  ["keeps its own mark", [user("Hi"), system(reminded("Now"))], [user(`Hi\n\n${reminded("Now")}`)]],
  [
    "stands beside an image",
    [
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }] },
      system("Now"),
    ],
    [
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
          { type: "text", text: `\n\n${reminded("Now")}` },
        ],
      },
    ],
  ],
])("a system message between others of the Messages and the Responses API %s", (_, messages, expected) => {
  expect(folded(...messages)).toEqual(expected);
});

test("a system message between others of the Messages and the Responses API keeps its place in a chat, whose clients choose the roles themselves", () => {
  const messages = [user("Hi"), system("Now"), assistant("Yes"), user("Go on")];
  expect(steadyPrompt({ messages }, { foldsSystem: false }).body.messages).toEqual(messages);
});

const tool = (name: string, deferred = false) => ({ name, input_schema: {}, ...(deferred && { defer_loading: true }) });
const found = (name: string, id: string) => [
  { role: "assistant", content: [{ type: "tool_use", id, name: "ToolSearch", input: {} }] },
  {
    role: "user",
    content: [{ type: "tool_result", tool_use_id: id, content: [{ type: "tool_reference", tool_name: name }] }],
  },
];
const toolsOf = (tools: object[], messages: object[]): unknown => {
  const read = readRequest("message", Buffer.from(JSON.stringify({ model: "m", max_tokens: 1, tools, messages })));
  const { tools: sent }: ChatBody = JSON.parse(Buffer.from(read.body).toString());
  return sent?.map(({ function: { name } }) => name);
};
const asked = [{ role: "user", content: "Search." }];

test("a tool that Claude Code loads in mid-conversation is written behind the tools that came before it", () => {
  const before = [tool("Bash"), tool("ToolSearch"), tool("Placeholder", true), tool("Write")];
  const [bash, search, ...others] = before;
  const first = [bash, search, tool("WebFetch", true), ...others].map(Object);
  const second = [bash, tool("Cron", true), search, tool("WebFetch", true), ...others].map(Object);
  const names = ["Bash", "ToolSearch", "Placeholder", "Write"];
  expect(toolsOf(before, asked)).toEqual(names);
  expect(toolsOf(first, [...asked, ...found("WebFetch", "a")])).toEqual([...names, "WebFetch"]);
  const both = [...asked, ...found("WebFetch", "a"), ...found("Cron", "b")];
  expect(toolsOf(second, both)).toEqual([...names, "WebFetch", "Cron"]);
});

test("a tool that Claude Code loads in mid-conversation stays in its place when it was there from the beginning", () => {
  const tools = [tool("Bash"), tool("WebFetch"), tool("Write")];
  expect(toolsOf(tools, [...asked, ...found("WebFetch", "a")])).toEqual(["Bash", "WebFetch", "Write"]);
});

/** A conversation as text, each message after the one before, as a template that keeps earlier turns renders it. */
function rendered(messages: readonly ChatMessage[]): string {
  return messages.map(({ role, content }) => `<${role}>${contentText(content)}`).join("");
}

test("each turn of a folded conversation begins with the whole turn before", () => {
  const texts = fc.constantFrom("a", "b", "<system-reminder>c");
  const turn = fc.oneof(
    fc.tuple(texts, fc.boolean()).map(([text, late]) => [user(text), ...(late ? [system("left")] : [])]),
    texts.map((text) => [calls("x"), result("x", text), system("9 left")]),
    texts.map((text) => [calls("x", "y"), system("between"), result("x", text), result("y", text)]),
    texts.map((text) => [assistant(text), system("after")]),
  );
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 12 }), (turns) => {
      let before = "";
      for (const end of turns.keys()) {
        const now = rendered(folded(system("front"), user("begin"), ...turns.slice(0, end + 1).flat()));
        expect(now.startsWith(before)).toBe(true);
        before = now;
      }
    }),
  );
});
