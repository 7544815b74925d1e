import { z } from "zod";
import { model } from "#shared/model/model.ts";

/** What is there at this moment. */
export const modelList = z.object({
  object: z.literal("list").describe("What this is."),
  data: z.array(model).describe("The models that the key may use, by id; empty where none is installed."),
});

/** That the gateway runs. */
export const health = z.object({
  status: z.literal("ok").describe("Always `ok`: a process that does not run says nothing."),
});

/** Whether the gateway can serve. */
export const readinessTold = z.object({
  ready: z.boolean().describe("Whether all of the checks went well."),
  checks: z
    .object({
      serving: z.boolean().describe("That the gateway is not about to stop."),
      broker: z.boolean().describe("That it has a connection to the broker, and through it to the machines."),
      keys: z.boolean().describe("That the store of the keys answers, or was away for only a short time."),
    })
    .describe("What was looked at."),
  reasons: z.array(z.string()).describe("Why the gateway cannot serve, in words; empty while it can."),
});

/** What this API says of itself. */
export const described = z.looseObject({
  openapi: z.string().describe("The version of OpenAPI that it is written in."),
});
