import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { type CapturedContent, capturedContent, openContent } from "../records/captured-content.ts";
import { contentForgotten, contentRead } from "../records/sign-in.ts";
import { type AdminSite, onStore, reads } from "./operation.ts";
import { ofOneRequest } from "./request-operations.ts";

const ofContent = { ...reads, ...ofOneRequest, path: "/requests/{id}/content", forAdmins: true } as const;

/** The operations of the content of requests that is captured for admins. The trail has each before it is done. */
export const contentOperations = {
  readContent: onStore({
    ...ofContent,
    summary: "The prompt of a captured request and its answer; the trail has each look before it is shown",
    answer: capturedContent,
    run: ({ params: { id } }, site) => findContent(id, contentRead, site),
  }),
  forgetContent: onStore({
    ...ofContent,
    method: "DELETE",
    summary: "Remove the content of a captured request for good",
    answer: z.strictObject({ id: z.string(), state: z.literal("forgotten") }),
    async run({ params: { id } }, site) {
      const { key } = await findContent(id, contentForgotten, site);
      await site.captures.remove(key, id);
      return { id, state: "forgotten" as const };
    },
  }),
};

/** Finds the content of a request under whichever key, and writes into the trail who does what with it. */
async function findContent(
  id: string,
  action: typeof contentRead | typeof contentForgotten,
  { captures, keys, peppers, sessions, clock, actor }: AdminSite,
): Promise<CapturedContent> {
  for (const key of await captures.holders()) {
    const [sealed] = await captures.find(key, [id]);
    const content = sealed && openContent({ id, key }, sealed, peppers);
    if (content === undefined) continue;
    const found = await keys.find(key);
    const name = found.kind === "record" ? found.record.name : "lapsed";
    await sessions.noteSignIn({ at: clock.wall(), ...actor, action, key, name, detail: { request: id } });
    return content;
  }
  const message = `No content of the request ${id} is kept: its key has no capture, its gateway runs without TRUNKLINE_CAPTURE=on, its time is over, it was removed, or its pepper is gone.`;
  throw new Fault("request_not_found", { message, param: "id" });
}
