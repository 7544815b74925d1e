import { code } from "./docs-code.ts";
import { markup, type Markup } from "./docs-markup.ts";

const model = "llama3.2";

/** Renders the first steps: from a key to an answer. */
export function startSection(baseUrl: string): Markup {
  const block = (label: string, text: string): Markup => code(text, { baseUrl, label });
  return markup`<section><h2 id="start">Start</h2>
<p>Any client of OpenAI’s chat completions or of its Responses API works when it is given another base URL and a key of this service. No response is kept: where a client counts on that, tell it not to (<code>store: false</code> in the AI SDK). The base URL here is <code data-base>${baseUrl}</code>.</p>
<ol class="steps"><li><p>Ask whoever runs this service for a key, and see which models it may use:</p>${block("Shell", listing(baseUrl))}</li>
<li><p>Ask one of them something; <code>${model}</code> stands for yours:</p>${block("Shell", shell(baseUrl))}${block("Node.js, with openai", node(baseUrl))}${block("Python, with openai", python(baseUrl))}${block("Codex, in its config.toml", codex(baseUrl))}</li></ol></section>`;
}

function listing(baseUrl: string): string {
  return `export API_KEY="your key"
curl ${baseUrl}/models -H "Authorization: Bearer $API_KEY"`;
}

function shell(baseUrl: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello!" }] });
  return `curl -N ${baseUrl}/chat/completions \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`;
}

function node(baseUrl: string): string {
  return `import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "${baseUrl}",
  apiKey: process.env.API_KEY,
});
const stream = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello!" }],
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}`;
}

function python(baseUrl: string): string {
  return `import os
from openai import OpenAI

client = OpenAI(
    base_url="${baseUrl}",
    api_key=os.environ["API_KEY"],
)
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello!"}],
)
print(answer.choices[0].message.content)`;
}

function codex(baseUrl: string): string {
  return `model = "${model}"
model_provider = "trunkline"

[model_providers.trunkline]
name = "Trunkline"
base_url = "${baseUrl}"
env_key = "API_KEY"
wire_api = "responses"`;
}
