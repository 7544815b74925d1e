import { z } from "zod";
import { fleetListing } from "#shared/fleet/shown-fleet.ts";
import { shownRequest } from "#shared/requests/shown-request.ts";
import { askerOf } from "./operations-access.ts";
import { type AdminOperation, eventsMedia, reads, requestCursor } from "./serve-operation.ts";
import { noRequest, shownNow } from "./tell-events.ts";

/** The operation that tells a page of the console what changes. */
export const followSite: AdminOperation = {
  ...reads,
  path: "/events",
  summary:
    "What changes, as server-sent events: fleet (as /fleet), now (counts, twice a second), request (as one ends), and change " +
    "(a key, machine or route). A stream ends after 15 seconds; Last-Event-ID goes on behind a request",
  answer: z.union([fleetListing, shownNow, shownRequest]),
  media: eventsMedia,
  refusals: ["concurrency_limit_exceeded", "server_is_overloaded", "shutting_down"],
  async handle(request, reply, { events }) {
    const { "last-event-id": heard } = request.headers;
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) reply.raw.setHeader(name, value);
    }
    const { admin, session } = askerOf(request);
    const owner = { key: admin.id, session: session?.id };
    await events.follow(reply.raw, { owner, heard: isPlace(heard) ? heard : undefined });
    return reply.hijack();
  },
};

function isPlace(heard: unknown): heard is string {
  return typeof heard === "string" && (heard === noRequest || requestCursor.test(heard));
}
