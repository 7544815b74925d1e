import { z } from "zod";
import { answeringModel } from "./answer-parts.ts";

const tokens = z.int().nonnegative();

export const embedding = z.object({
  object: z.literal("embedding").describe("What this is."),
  index: z.int().nonnegative().describe("Which of the texts this is of, from 0."),
  embedding: z
    .union([z.array(z.number()), z.string()])
    .describe("The vector: numbers, or with `base64` its 32-bit floats, little-endian, as base64."),
});

/** The vectors of one or many texts. */
export const embeddingList = z.object({
  object: z.literal("list").describe("What this is."),
  data: z.array(embedding).describe("One vector for each text, in the order of the texts."),
  model: answeringModel,
  usage: z
    .object({
      prompt_tokens: tokens.describe("The tokens of all texts."),
      total_tokens: tokens.describe("The same: vectors are made of no tokens."),
    })
    .describe("What the request used."),
});
