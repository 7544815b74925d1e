import { z } from "zod";

const count = z.int().nonnegative();

/** How far a request that runs has come: it waits for a machine or a slot, its model is loaded, its prompt is computed, or its answer comes. */
export const runningStages = ["waiting", "loading", "reading", "answering"] as const;
export type RunningStage = (typeof runningStages)[number];

/** A request that was admitted and has not ended, as its gateway tells of it. */
export const runningRequest = z.object({
  id: z.string().describe("The id that the client gets as x-request-id."),
  at: z.iso.datetime().describe("When it arrived."),
  age_ms: count,
  state: z.enum(runningStages),
  key: z.string(),
  model: z.string().nullable().describe("The model as the client named it."),
  machine: z.string().nullable().describe("The machine that was offered it last; null while there is none."),
  path: z.string().describe("The API, by its path."),
  streamed: z.boolean(),
  tokens: count.describe("Tokens of the answer so far."),
  gateway: z.string().describe("The host of the gateway that has it."),
  tried: z
    .array(z.object({ machine: z.string(), from_tokens: count.nullable(), code: z.string().nullable() }))
    .describe("The machines that were offered it, the latest last."),
});
export type ShownRunning = z.infer<typeof runningRequest>;

/** The requests of one gateway, those that arrived first. `left_out` counts the others. */
export const toldRunning = z.object({ data: z.array(runningRequest), left_out: count });
export type ToldRunning = z.infer<typeof toldRunning>;
