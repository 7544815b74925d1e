import { routeName } from "../protocol/identifiers.ts";
import { z } from "zod";
import { shownRoute } from "../fleet/shown-fleet.ts";
import { replicatedIn } from "../records/change-key.ts";
import { furtherAbilities, modelId } from "../protocol/model.ts";
import { findRecord, removeRecord, setRecord } from "../records/change-record.ts";
import { routeForm, routeTargets, showRoute, shownModelRoute } from "../records/route-record.ts";
import {
  atGateway,
  changeOutcome,
  listRecords,
  numberInUrl,
  onStore,
  reads,
  recordsOf,
  replicated,
  showChange,
  yesOrNo,
} from "./operation.ts";

const changedModelRoute = shownModelRoute.extend(changeOutcome);
const modelRouteList = recordsOf(z.array(shownModelRoute).describe("By name."));
const removedModelRoute = z.strictObject({ route: routeName, state: z.literal("removed"), replicated });

const readsOneRoute = {
  ...reads,
  params: z.strictObject({
    route: routeName.describe("The name of the route, percent-encoded: a name that clients ask for, or a pattern."),
  }),
  refusals: ["route_not_found"],
} as const;

/** The operations of the names that stand for models, and of where a request for a name would go. */
export const routeOperations = {
  listRoutes: onStore({
    ...reads,
    path: "/routes",
    summary: "List the names that stand for models, each with its targets",
    answer: modelRouteList,
    run: (_, { routes }) => listRecords((unread) => routes.list(unread), showRoute),
  }),
  showRoute: onStore({
    ...readsOneRoute,
    path: "/routes/{route}",
    summary: "Show a route",
    answer: shownModelRoute,
    run: async ({ params: { route } }, site) => showRoute(await findRecord(routeForm, route, site)),
  }),
  setRoute: onStore({
    ...readsOneRoute,
    method: "PUT",
    path: "/routes/{route}",
    summary: "Let a name stand for models, for all gateways at once; makes the route if there is none",
    body: z.strictObject({
      targets: routeTargets.describe("The models that answer for the name, in the order in which they are tried."),
    }),
    answer: changedModelRoute,
    refusals: ["route_change_refused"],
    example: { targets: [{ model: "qwen3-coder:30b" }, { model: "gpt-oss:20b", machines: ["attic"] }] },
    async run({ params: { route }, body: { targets } }, site) {
      return showChange(await setRecord(routeForm, { name: route }, () => ({ targets }), site), showRoute);
    },
  }),
  removeRoute: onStore({
    ...readsOneRoute,
    method: "DELETE",
    path: "/routes/{route}",
    summary: "Remove a route; its name then means the model of that name again, if there is one",
    answer: removedModelRoute,
    async run({ params: { route } }, site) {
      const changed = await removeRecord(routeForm, route, site);
      return { route, state: "removed" as const, ...replicatedIn(changed) };
    },
  }),
  explainRoute: atGateway({
    ...reads,
    path: "/route",
    summary:
      "The machines that a request for a model would be offered to, in their order, and the reasons against the others",
    query: z.strictObject({
      model: modelId.describe("The model, as clients name it."),
      kind: z
        .enum(["chat", "complete", "embed", ...furtherAbilities])
        .default("chat")
        .describe("The kind of the request."),
      tools: yesOrNo.default(false).describe("True if the request has tools."),
      vision: yesOrNo.default(false).describe("True if the request has images."),
      prompt_tokens: numberInUrl(
        z.int().nonnegative().optional().describe("The expected length of its prompt, in tokens."),
      ),
    }),
    answer: shownRoute,
  }),
};
