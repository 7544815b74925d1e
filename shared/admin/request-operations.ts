import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { keyId } from "../keys/key-token.ts";
import { findKeys } from "../records/find-keys.ts";
import { machineName } from "../protocol/identifiers.ts";
import { showRequest, shownRequest } from "../requests/shown-request.ts";
import { runningRequest } from "../requests/running-request.ts";
import {
  atGateway,
  onStore,
  keyText,
  listOf,
  numberInUrl,
  pageLength,
  reads,
  requestCursor,
  timeInUrl,
  yesOrNo,
} from "./operation.ts";

const requestList = listOf(z.array(shownRequest).describe("The latest to end first.")).extend({
  next: z.string().nullable().describe("Where to go on, as before; null when nothing older is left."),
  unread: z.int().nonnegative().describe("Records of another version of Trunkline that are missing here."),
  looked_until: z.iso
    .datetime()
    .nullish()
    .describe(
      "The end of the earliest request that was looked at. A search ends after 200 ms: with a next, it can go on.",
    ),
});

/** The time after which a search answers with what it has found. */
export const searchWithinMs = 200;
/** A part of a name, as a filter. */
const namePart = z.string().min(1).max(200);

const cursor = z.string().regex(requestCursor, "must be the next of a page");

export const ofOneRequest = {
  params: z.strictObject({ id: z.string().max(100).describe("The id that the client got as x-request-id.") }),
  refusals: ["request_not_found"],
} as const;

/** The operations of requests that run and of the records of those that ended. */
export const requestOperations = {
  listRunning: atGateway({
    ...reads,
    path: "/requests/running",
    summary: "Requests that were admitted and have not ended, of all gateways, by their arrival",
    answer: listOf(z.array(runningRequest)).extend({
      left_out: z.int().nonnegative().describe("Requests that gateways with very many of them left out."),
      silent: z.array(z.string()).describe("The hosts of gateways that did not tell in time, or are too old to."),
    }),
  }),
  cancelRequest: atGateway({
    ...reads,
    ...ofOneRequest,
    method: "POST",
    path: "/requests/{id}/cancel",
    summary:
      "Cancel a request that runs, at whichever gateway; its client gets cancelled_by_operator, and no machine goes on",
    answer: z.strictObject({ id: z.string(), state: z.literal("cancelled") }),
  }),
  listRequests: onStore({
    ...reads,
    path: "/requests",
    summary: "Requests that ended, of all gateways, the latest first, without any text of prompts and answers",
    query: z.strictObject({
      failed: yesOrNo.optional().describe("Only requests that failed, or only those that did not."),
      key: keyText.optional(),
      code: z
        .string()
        .regex(/^[a-z_]{1,60}$/, "must be ok or the code of an error, such as upstream_error")
        .optional()
        .describe("Only requests with this outcome: ok, or the code of an error."),
      model: namePart
        .optional()
        .describe("Only for models with this part in their names, as asked for or as the machine names them."),
      api: namePart.optional().describe("Only those whose path has this part, such as chat/completions."),
      longer: numberInUrl(z.int().min(0)).optional().describe("Only those that took longer than so many seconds."),
      machine: machineName.optional().describe("Only those that this machine was offered."),
      since: timeInUrl.optional().describe("Only those that arrived then or later."),
      until: timeInUrl.optional().describe("Only those that arrived before then."),
      before: cursor.optional().describe("Only those that ended before: the next of the page before."),
      limit: pageLength,
    }),
    answer: requestList,
    refusals: ["key_not_found"],
    async run({ query: { key, since, until, longer, before, limit, ...same } }, { requests, keys }) {
      const [sinceMs, untilMs] = [since, until].map((each) => (each === undefined ? undefined : Date.parse(each)));
      const keyIds = key === undefined ? undefined : await findKeys(key, keys);
      const wanted = { ...same, keyIds, sinceMs, untilMs, longerMs: longer === undefined ? undefined : longer * 1_000 };
      const terms = { limit, before, withinMs: searchWithinMs };
      const { found, next = null, lookedUntilMs, unread } = await requests.find(wanted, terms);
      const lookedUntil = lookedUntilMs === undefined ? null : new Date(lookedUntilMs).toISOString();
      const data = found.map(({ record }) => showRequest(record));
      return { object: "list" as const, data, next, unread, looked_until: lookedUntil };
    },
  }),
  showRequest: onStore({
    ...reads,
    path: "/requests/{id}",
    summary: "The way of one request: who asked, which machines were tried and why, and how it ended",
    ...ofOneRequest,
    answer: shownRequest.extend({
      captured: z.boolean().optional().describe("True if its content is kept for admins."),
    }),
    async run({ params: { id } }, { requests, captures, place }) {
      const record = await requests.get(id);
      if (record !== undefined) {
        const captured = (await captures.bytesOf(keyId.parse(record.keyId), [id])) > 0;
        return { ...showRequest(record), captured };
      }
      const where = place === undefined ? "" : ` in ${place}`;
      const message = `There is no record of the request ${id}${where}: it is still running, its key was refused, or its record was dropped (TRUNKLINE_REQUESTS_MAX, TRUNKLINE_REQUESTS_DAYS).`;
      throw new Fault("request_not_found", { message, param: "id" });
    },
  }),
};
