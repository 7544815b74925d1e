import { RequestRecords } from "#shared/requests/request-records.ts";

/** The records of a site on which no request has ended. */
export const noRequests = new RequestRecords({ page: async () => [], get: async () => undefined });
