import { contentOperations } from "./content-operations.ts";
import { followSite } from "./event-operation.ts";
import { historyOperations } from "./history-operations.ts";
import { keepOperations } from "./keep-operations.ts";
import { keyOperations } from "./key-operations.ts";
import { machineOperations } from "./machine-operations.ts";
import { priceOperations } from "./price-operations.ts";
import { alertOperations } from "./alert-operations.ts";
import { peopleOperations } from "./people-operations.ts";
import { recordOperations } from "./record-operations.ts";
import { requestOperations } from "./request-operations.ts";
import { routeOperations } from "./route-operations.ts";
import { sessionOperations } from "./session-operations.ts";
import { teamOperations } from "./team-operations.ts";
import { showSiteStatus } from "./site-operations.ts";

/** All operations of the admin API. The command line loads those of one family, and the console their types. */
export const adminApi = {
  ...keyOperations,
  ...recordOperations,
  ...requestOperations,
  ...contentOperations,
  ...historyOperations,
  ...machineOperations,
  ...keepOperations,
  ...routeOperations,
  ...priceOperations,
  ...teamOperations,
  ...peopleOperations,
  ...alertOperations,
  ...sessionOperations,
  showSiteStatus,
  followSite,
};
export type AdminApi = typeof adminApi;
