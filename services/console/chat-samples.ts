/** A chat as code that sends it: for a shell, Python and TypeScript. The key is read from the environment. Pure. */

/** The characters that reorder or break a line of code where it is read. All of them may stand escaped. */
const misleading = /[\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Returns a value as JSON whose strings are also strings of Python and of TypeScript. */
function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent);
  return text.replaceAll(misleading, (each) => `\\u${each.charCodeAt(0).toString(16)}`);
}

function pythonText(value: unknown, indent: string): string {
  const deeper = `${indent}    `;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return jsonText(value);
  const lines = Array.isArray(value)
    ? value.map((each) => pythonText(each, deeper))
    : Object.entries(value).map(([name, each]) => `${jsonText(name)}: ${pythonText(each, deeper)}`);
  const [open, end] = Array.isArray(value) ? "[]" : "{}";
  return [open, ...lines.map((line) => `${deeper}${line},`), `${indent}${end}`].join("\n");
}

/** Returns the code by its names. `request` is the body of the chat. */
export function samplesOf(request: object, baseUrl: string): Readonly<Record<string, string>> {
  const named = Object.entries(request).map(([name, value]) => `    ${name}=${pythonText(value, "    ")},`);
  return {
    curl: `curl "${baseUrl}/chat/completions" \\
  -H "Authorization: Bearer $TRUNKLINE_KEY" -H "Content-Type: application/json" \\
  -d @- <<'END'
${jsonText(request, 2)}
END`,
    "Python, with the package openai": `import os
from openai import OpenAI

client = OpenAI(base_url="${baseUrl}", api_key=os.environ["TRUNKLINE_KEY"])
answer = client.chat.completions.create(
${named.join("\n")}
)
print(answer.choices[0].message.content)`,
    "TypeScript, with the package openai": `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${baseUrl}", apiKey: process.env.TRUNKLINE_KEY });
const answer = await client.chat.completions.create(${jsonText(request, 2)});
console.log(answer.choices[0]?.message.content);`,
  };
}
