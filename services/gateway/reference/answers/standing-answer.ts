import { z } from "zod";
import { model } from "#shared/model/model.ts";

/** The models that are available now. */
export const modelList = z.object({
  object: z.literal("list").describe("What this is."),
  data: z.array(model).describe("The models that the key may use, by id; empty where none is installed."),
});

/** The answer that the gateway process runs. */
export const health = z.object({
  status: z.literal("ok").describe("Always `ok`: a process that does not run says nothing."),
});

/** The answer that says if the gateway can serve requests. */
export const readinessTold = z.object({
  ready: z.boolean().describe("Whether all of the checks went well."),
  checks: z
    .object({
      serving: z.boolean().describe("That the gateway is not about to stop."),
      broker: z.boolean().describe("That it has a connection to the broker, and through it to the machines."),
      keys: z
        .boolean()
        .describe("That the store of the keys answers, or was away for only a short time, and was not emptied."),
    })
    .describe("What was looked at."),
  reasons: z
    .array(z.string())
    .describe("Why the gateway cannot serve, and what else is to be mended though it can, in words."),
});

/** The OpenAPI document of this API. */
export const described = z.looseObject({
  openapi: z.string().describe("The version of OpenAPI that it is written in."),
});
