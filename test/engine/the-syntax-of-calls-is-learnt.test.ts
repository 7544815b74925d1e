import { describe, expect, test } from "vitest";
import { openEngine } from "../../services/agent/runtimes/llama/gguf-engine.ts";
import { writePrompt } from "../../services/agent/runtimes/llama/gguf-prompt.ts";
import { GgufTemplate } from "../../services/agent/runtimes/llama/gguf-template.ts";
import { thinkingTemplate } from "./templates.ts";
import { noEngine, quietly } from "./tiny-runtime.ts";

/** Templates as small as can be, each in the manner of a family of models. */
const around = (call: string): string => `{% if tools %}[{{ tools | tojson }}]{% endif %}
{%- for message in messages %}<{{ message.role }}>{{ message.content }}${call}<end>
{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`;
const eachCall = "{%- for call in message.tool_calls or [] %}";
const called = "call.function";

const families = {
  "JSON in tags": [
    thinkingTemplate,
    { begin: "<tool_call>", again: "<tool_call>", ends: ["</tool_call>"], argumentsAs: "object" },
    { kind: "json", nameKey: "name", argumentsKey: "arguments", inArray: false },
  ],
  "JSON on its own": [
    around(`${eachCall}{% if not loop.first %}{{ raise_exception("one call only") }}{% endif %}
{"name": "{{ ${called}.name }}", "parameters": {{ ${called}.arguments | tojson }}}{% endfor %}`),
    { begin: "", again: undefined, ends: [], argumentsAs: "object" },
    { kind: "json", nameKey: "name", argumentsKey: "parameters", inArray: false },
  ],
  "a list of calls": [
    around(`{% if message.tool_calls %}[TOOL_CALLS] [${eachCall}{"name": "{{ ${called}.name }}", "arguments": {{
${called}.arguments | tojson }}, "id": "{{ call.id }}"}{% if not loop.last %}, {% endif %}{% endfor %}]{% endif %}`),
    { begin: "[TOOL_CALLS]", again: "[TOOL_CALLS]", ends: [], argumentsAs: "object" },
    { kind: "json", nameKey: "name", argumentsKey: "arguments", inArray: true },
  ],
  "a name before the arguments": [
    around(`{% if message.tool_calls %}<calls>${eachCall}<call>function<sep>{{ ${called}.name }}
\`\`\`json
{{ ${called}.arguments }}
\`\`\`</call>{% endfor %}</calls>{% endif %}`),
    { begin: "<calls><call>function<sep>", again: "<call>function<sep>", ends: ["```</call>", "</calls>"] },
    { kind: "named", between: "\n```json\n" },
  ],
} as const;

describe.skipIf(noEngine)("how a model calls tools is learnt from its template", () => {
  const read = async (source: string): Promise<GgufTemplate> => {
    const { dir, ...options } = { ...quietly, dir: quietly.engineDir };
    const { templates } = await openEngine({ ...options, dir });
    return new GgufTemplate({ template: source, beginText: "<s>", endText: "</s>" }, templates);
  };

  test.each(Object.entries(families))("%s", async (_family, [source, marks, form]) => {
    const { calls } = await read(source);
    expect(calls).toMatchObject(marks);
    expect(calls?.form).toEqual(form);
  });

  test("and not taken for one that has no calls, or calls without JSON", async () => {
    expect((await read(around(""))).calls).toBeUndefined();
    const inTags = `${eachCall}<f={{ ${called}.name }}>{% for key, value in ${called}.arguments | items %}<p={{ key }}>{{ value }}</p>{% endfor %}</f>{% endfor %}`;
    expect((await read(around(inTags))).calls).toBeUndefined();
    const silent = around("").replace("{% if tools %}[{{ tools | tojson }}]{% endif %}", "");
    expect((await read(silent)).calls).toBeUndefined();
  });

  test("thoughts are known by their marks, and by channels", async () => {
    expect((await read(around("{# </think> #}"))).thoughts).toEqual({ open: "<think>", close: "</think>" });
    const channels = await read(around("{# <|channel|>analysis<|message|> #}"));
    expect([channels.thinks, channels.onChannels]).toEqual([true, true]);
    expect((await read(around(""))).thinks).toBe(false);
  });

  test("an effort that the template cannot be asked for is refused", async () => {
    const always = await read(around("{# </think> #}"));
    const ask = (effort: "none" | "high") => () => always.render([{ role: "user", content: "?" }], { effort });
    expect(ask("none")).toThrow("reasoning_effort");
    expect(ask("high")).toThrow("reasoning_effort");
  });

  test("an answer that has begun stands after its thoughts", async () => {
    const file = { controlTexts: ["<end>"] };
    const begun = { role: "assistant" as const, content: "So<end> ", reasoning_content: "Hm." };
    const body = { messages: [{ role: "user" as const, content: "?" }, begun] };
    const asked = "<user>?<end>\n<assistant>";
    const thinker = writePrompt({ template: await read(around("{# </think> #}")), file, body });
    // The mark that ends a turn has a seam in it: it is text here.
    expect(thinker).toEqual({ text: `${asked}<think>\nHm.\n</think>\n\nSo<\uFDD0end> `, thinking: false });
    const channels = await read(around("{# <|channel|> <|message|> #}"));
    expect(writePrompt({ template: channels, file, body }).text).toBe(
      `${asked}<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>So<\uFDD0end> `,
    );
  });

  test("a template that knows no system message hears it from the user", async () => {
    const strict = await read(
      `{% for message in messages %}{% if message.role == "system" %}{{ raise_exception("no") }}{% endif %}<{{ message.role }}>{{ message.content }}{% endfor %}`,
    );
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello" },
    ];
    expect(strict.render(messages, {})).toBe("<user>Be brief.\n\nHello");
    const twice = [...messages, { role: "system", content: "Again." }];
    expect(() => strict.render(twice, {})).toThrow("does not take a conversation of this form");
  });
});
