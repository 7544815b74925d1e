import { z } from "zod";

/** The error body of every refusal and every failure, as an answer and inside a stream. */
export const errorAnswer = z.object({
  error: z
    .object({
      message: z.string().describe("What is wrong, and what to do about it, for a person."),
      type: z.string().describe("The kind of error, as OpenAI has them; of a limit, which one it is."),
      param: z
        .string()
        .nullable()
        .describe("The part of the request that is at fault, as a path; null where it is none."),
      code: z.string().nullable().describe("What is wrong, for a program: a code of the table of errors."),
    })
    .describe("The four keys that every error has."),
});
