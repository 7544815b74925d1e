import { describe, expect, test } from "vitest";
import { refuses } from "./refuses.ts";
import { ollamaStage } from "./stage.ts";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

const on = staged({
  ...everyRuntime,
  "Ollama's MLX engine": () => ollamaStage({ format: "safetensors" }),
});
type Name = Parameters<typeof on>[0];
const every = Object.keys(everyRuntime) as RuntimeName[];

describe("quirk 4: images are data URLs of types that the runtime reads", () => {
  const seen = (url: string) => ({
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
  });
  const param = "messages[0].content[0].image_url.url";

  test.each(every)("%s is never asked to fetch an image from somewhere", async (name) => {
    await refuses(on(name), seen("https://example.com/cat.png"), param);
  });

  test("Ollama would answer a gif with a 400 that names nothing; the client is told where it is", async () => {
    await refuses(on("Ollama"), seen("data:image/gif;base64,QUJD"), param);
  });

  test("Ollama takes what clients call image/jpg, and the base64 alone", async () => {
    expect(await on("Ollama").asked(seen("data:image/jpg;base64,QUJD"))).toMatchObject({
      messages: [{ role: "user", content: "", images: ["QUJD"] }],
    });
  });

  test("mlx-lm reads no images, and answers one with a 404; the client is told where it is", async () => {
    await refuses(on("mlx-lm"), seen("data:image/png;base64,QUJD"), "messages[0].content[0]");
  });
});

describe("quirk 9: response_format where it would be dropped without a word", () => {
  const schema = { type: "object", properties: { a: { type: "number" } } };
  const formatted = { response_format: { type: "json_schema", json_schema: { name: "s", schema } } };
  const object = { response_format: { type: "json_object" } };

  test.each<[Name, object, object]>([
    ["Ollama", formatted, { format: schema }],
    ["Ollama", object, { format: "json" }],
    ["vLLM", formatted, formatted],
    ["vLLM", object, object],
    ["llama-server", formatted, formatted],
    ["llama-server", object, object],
    ["LM Studio", formatted, formatted],
    [
      "LM Studio",
      object,
      {
        response_format: { type: "json_schema", json_schema: { name: "json_object", schema: { type: "object" } } },
      },
    ],
  ])("%s is asked for %j as %j", async (name, request, asked) => {
    expect(await on(name).asked(request)).toMatchObject(asked);
  });

  test.each<Name>(["Ollama's MLX engine", "mlx-lm"])("%s has none, so that it is a 400 that names it", async (name) => {
    await refuses(on(name), formatted, "response_format");
    await refuses(on(name), object, "response_format");
    expect(await on(name).asked({ response_format: { type: "text" } })).not.toHaveProperty("response_format");
  });

  test.each(["stop", "logprobs"])("Ollama's MLX engine drops %s as well, so that it is a 400", async (field) => {
    await refuses(on("Ollama's MLX engine"), { [field]: field === "stop" ? ["x"] : true }, field);
  });
});
