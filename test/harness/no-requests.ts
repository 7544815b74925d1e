import type { HistoryReader } from "#shared/history/history.ts";
import type { StoredResponses } from "#shared/records/stored-responses.ts";
import { RequestRecords } from "#shared/requests/request-records.ts";

/** The records of a site on which no request has ended. */
export const noRequests = new RequestRecords({ page: async () => [], get: async () => undefined });
/** The captured content of a site that keeps none. */
export const noCaptures: StoredResponses = {
  put: async () => "closed",
  holdPosition: async () => undefined,
  find: async () => [],
  bytesOf: async () => 0,
  holders: async () => [],
  remove: async () => false,
  removeExpired: async () => undefined,
};
export const noHistory: HistoryReader = { visit: async () => undefined, since: async () => undefined };
