import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { findBinary } from "../harness/find-binary.ts";
import { startUp } from "../harness/start-trunkline.ts";

const run = promisify(execFile);
const python = await findBinary("python3");
const importable =
  python !== undefined &&
  (await run(python, ["-c", "import openai"]).then(
    () => true,
    () => false,
  ));
if (!importable) console.log("Skipping the official Python SDK: python3 cannot import openai (pip install openai).");

/** What a user of the SDK writes; it prints what it got as one line of JSON. */
const program = `
import json, openai
client = openai.OpenAI()
got = {"models": [model.id for model in client.models.list()]}
ask = {"model": "scripted", "messages": [{"role": "user", "content": "/script tokens=3 delay_ms=2 nonce=abc"}]}
got["whole"] = client.chat.completions.create(**ask).choices[0].message.content
got["stream"] = "".join(chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(stream=True, **ask))
try:
    client.models.retrieve("absent")
except openai.NotFoundError as error:
    got["absent"] = [error.status_code, error.code, error.param]
ask["messages"][0]["content"] += " fail_at=1"
try:
    for chunk in client.chat.completions.create(stream=True, **ask): pass
    got["failing"] = "ended as a success"
except openai.APIError as error:
    got["failing"] = error.code
print(json.dumps(got))
`;

test.skipIf(!importable)("the official Python SDK, changed in nothing but base URL and key", async () => {
  await using up = await startUp();
  const env = { ...process.env, OPENAI_BASE_URL: up.endpoint.baseUrl, OPENAI_API_KEY: up.endpoint.key };
  const { stdout } = await run(python ?? "python3", ["-c", program], { env });
  expect(JSON.parse(stdout)).toEqual({
    models: ["scripted", "scripted:embed", "scripted:mlx", "scripted:plain", "scripted:vision"],
    whole: "abc-0 abc-1 abc-2 ",
    stream: "abc-0 abc-1 abc-2 ",
    absent: [404, "model_not_found", "model"],
    failing: "upstream_error",
  });
});
