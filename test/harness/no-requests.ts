import type { HistoryReader } from "#shared/history/history.ts";
import { RequestRecords } from "#shared/requests/request-records.ts";

/** The records of a site on which no request has ended. */
export const noRequests = new RequestRecords({ page: async () => [], get: async () => undefined });
export const noHistory: HistoryReader = { visit: async () => undefined, since: async () => undefined };
