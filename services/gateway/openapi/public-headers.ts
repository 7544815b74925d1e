import { wordsOf } from "./words.ts";

/** All response headers that matter to clients of this API, by the names that official clients use. */
export const answerHeaders = Object.fromEntries(
  wordsOf("Headers of answers").map(({ name, example = "", meaning: description }) => {
    const value = example.startsWith("`") ? example.slice(1, -1) : Number(example);
    return [name, { description, schema: { type: typeof value === "number" ? "integer" : "string" }, example: value }];
  }),
);

const bounds: Readonly<Partial<Record<string, object>>> = {
  "x-trunkline-resumable": { enum: ["1"] },
  "idempotency-key": { maxLength: 255 },
};

/** The optional headers of any request, besides the key. */
export const requestHeaders = Object.fromEntries(
  wordsOf("Headers of requests").map(({ name, meaning: description }) => {
    const schema = { type: "string", ...bounds[name] };
    return [name, { name, in: "header", required: false, description, schema }];
  }),
);
