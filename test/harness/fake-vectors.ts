import { createHash } from "node:crypto";
import { z } from "zod";
import { wordsIn } from "./asked-chat.ts";

const embedAsked = z.looseObject({
  input: z.union([z.string(), z.array(z.string())]),
  dimensions: z.number().optional(),
  encoding_format: z.enum(["float", "base64"]).optional(),
});

/** The list of vectors for what was asked, each of length one and made of its text. */
export function vectorList(
  body: Readonly<Record<string, unknown>>,
  told: { readonly model: string; readonly components?: number; readonly knowsBase64?: boolean },
): object {
  const { model, components = 8, knowsBase64 = true } = told;
  const { input, encoding_format: format } = embedAsked.parse(body);
  const texts = typeof input === "string" ? [input] : input;
  const data = texts.map((text, index) => {
    const vector = vectorOf(text, components);
    const embedding = format === "base64" && knowsBase64 ? base64(vector) : vector;
    return { object: "embedding", index, embedding };
  });
  const tokens = texts.reduce((sum, text) => sum + wordsIn(text), 0);
  return { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

export function vectorOf(text: string, components: number): number[] {
  const bytes = createHash("shake256", { outputLength: components }).update(text).digest();
  const vector = Array.from(bytes, (byte) => byte - 127.5);
  return vector.map((component) => component / Math.hypot(...vector));
}

function base64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [at, component] of vector.entries()) bytes.writeFloatLE(component, at * 4);
  return bytes.toString("base64");
}
