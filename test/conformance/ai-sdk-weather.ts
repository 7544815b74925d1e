import { stepCountIs, tool } from "ai";
import { z } from "zod";

/** A tool as users of the Vercel AI SDK write it, with the loop that runs it, and what it was asked. */
export function weatherOfAiSdk() {
  const asked: unknown[] = [];
  const get_weather = tool({
    description: "The weather of a city",
    inputSchema: z.object({ city: z.string() }),
    execute: async (given) => {
      asked.push(given);
      return "7 degrees";
    },
  });
  return { asked, tools: { get_weather }, stopWhen: stepCountIs(5) };
}
