import type { Api } from "../api.ts";
import { describeModels } from "./describe.ts";
import { serveModels } from "./list-models.ts";

/** The list of models, in the shape that the headers of a request ask for. */
export const api: Api = { prefix: "/v1", descriptions: [describeModels], endpoints: [], others: serveModels };
