import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { slotLengths } from "../history/history.ts";
import { historyAnswer, readHistory, slotLengthOf } from "../history/read-history.ts";
import { seriesParts, seriesMax, seriesOf, totalSeries } from "../history/sums.ts";
import { machineName } from "../protocol/identifiers.ts";
import { modelId } from "../protocol/model.ts";
import { numberInUrl, onStore, reads, timeInUrl } from "./operation.ts";

const stepsMax = 1_000;
const hourMs = 3_600_000;
/** The steps of a range that names none, by the longest range with such steps. */
const usualSteps = [
  [hourMs, 60],
  [6 * hourMs, 300],
  [25 * hourMs, 600],
  [8 * 24 * hourMs, 3_600],
  [Infinity, 6 * 3_600],
] as const;

/** The operation of the history of requests, by minute and hour. */
export const historyOperations = {
  readHistory: onStore({
    ...reads,
    path: "/history",
    summary: "Sums of ended requests by steps of time, of all gateways, in total and by model or machine",
    query: z.strictObject({
      since: timeInUrl.optional().describe("The beginning of the range, in place of span."),
      span: numberInUrl(
        z
          .int()
          .min(60)
          .max(90 * 86_400)
          .default(3_600),
      ).describe("The length of the range in seconds, unless since gives its beginning."),
      until: timeInUrl.optional().describe("The end; now unless given."),
      step: numberInUrl(
        z
          .int()
          .min(60)
          .max(90 * 86_400)
          .multipleOf(60, "must be whole minutes, as seconds")
          .optional(),
      ).describe("The length of a step in seconds. Sums of minutes are kept for 48 hours, those of hours for 90 days."),
      by: z.enum(seriesParts).optional().describe("What to tell apart in data."),
      model: modelId.optional().describe("Only of this model."),
      machine: machineName.optional().describe("Only of this machine."),
      limit: numberInUrl(z.int().min(1).max(seriesMax).default(seriesMax)).describe(
        "The most models or machines to tell apart. Others are added up.",
      ),
    }),
    answer: historyAnswer,
    refusals: ["invalid_value"],
    async run({ query: { since, span: seconds, until, step, by, model, machine, limit } }, { history, clock }) {
      if ([by, model, machine].filter((each) => each !== undefined).length > 1)
        throw refusal("by", "only one of 'by', 'model' and 'machine' can be given");
      const nowMs = clock.wall();
      const untilMs = Math.min(nowMs, until === undefined ? nowMs : Date.parse(until));
      const sinceMs = since === undefined ? untilMs - seconds * 1_000 : Date.parse(since);
      if (sinceMs >= untilMs) throw refusal("since", "it must be before 'until' and before now");
      const span = untilMs - sinceMs;
      const [, usual = 60] = usualSteps.find(([longest]) => span <= longest) ?? [];
      const keptMs = slotLengths.minute.keptMs;
      const isOld = sinceMs < nowMs - keptMs;
      const stepMs = (step ?? (isOld ? Math.max(usual, 3_600) : usual)) * 1_000;
      if (isOld && slotLengthOf(stepMs) === slotLengths.minute)
        throw refusal("step", `sums of minutes are kept for ${keptMs / hourMs} hours; give whole hours, such as 3600`);
      if (span / stepMs > stepsMax) throw refusal("step", `there would be more than ${stepsMax} steps (stepsMax)`);
      const of =
        model !== undefined
          ? seriesOf("model", model)
          : machine !== undefined
            ? seriesOf("machine", machine)
            : totalSeries;
      return readHistory(history, { sinceMs, untilMs, stepMs, by, of, limit });
    },
  }),
};

function refusal(param: string, reason: string): Fault {
  return new Fault("invalid_value", { message: `Invalid value for '${param}': ${reason}.`, param });
}
