import { z } from "zod";
import { fleetListing } from "../fleet/shown-fleet.ts";
import { machineName } from "../protocol/identifiers.ts";
import { shownRequest } from "../requests/shown-request.ts";
import { atGateway, eventsMedia, reads } from "./operation.ts";

const count = z.int().nonnegative();

/** The site at this moment. Machines count their jobs of all gateways, and records are those of all gateways. */
export const shownNow = z.strictObject({
  at: z.iso.datetime(),
  running: count.describe("Jobs that run on the machines."),
  waiting: count.describe("Jobs that wait there for a slot."),
  slots: count.describe("Slots of the machines that take work."),
  ended_last_minute: count.describe("Requests that ended in the last minute."),
  failed_last_minute: count,
  tokens_per_second: z
    .number()
    .nonnegative()
    .describe("Tokens of the answers that ended in the last minute, over its seconds."),
  machine_tokens_per_second: z
    .record(machineName, z.number().nonnegative())
    .optional()
    .describe("The same of each machine that answered in that minute. Gateways of 0.3.0 leave it out."),
});
export type ShownNow = z.output<typeof shownNow>;

/** The operation that tells a page of the console what changes. */
export const followSite = atGateway({
  ...reads,
  path: "/events",
  summary:
    "What changes, as server-sent events: fleet (as /fleet), now (counts, twice a second), request (as one ends), and change " +
    "(a key, machine or route). A stream ends after 15 seconds; Last-Event-ID goes on behind a request",
  answer: z.union([fleetListing, shownNow, shownRequest]),
  media: eventsMedia,
  refusals: ["concurrency_limit_exceeded", "server_is_overloaded", "shutting_down"],
});
