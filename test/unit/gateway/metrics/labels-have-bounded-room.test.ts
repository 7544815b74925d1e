import { expect, test } from "vitest";
import { Exposition, BoundedLabels } from "../../../../services/gateway/metrics/exposition.ts";
import { countFleetEvents } from "../../../../services/gateway/metrics/fleet-meters.ts";
import { ModelLabels, modelLabelsMax } from "../../../../services/gateway/metrics/request-meters.ts";
import { MetricsText } from "../../../harness/metrics-text.ts";

test("the label of a model is its id where a machine offers it, and one for all that callers make up", () => {
  const labels = new ModelLabels((model) => (model.startsWith("llama3") ? "llama3" : undefined));
  expect(labels.ofAsked(undefined)).toBe("none");
  expect(labels.ofAsked("llama3:latest")).toBe("llama3");
  expect(labels.ofAsked("made up")).toBe("other");
});

test("the label of a model stays when nobody offers it any more", () => {
  let isOffered = true;
  const labels = new ModelLabels((model) => (isOffered ? model : undefined));
  expect(labels.ofAsked("llama3")).toBe("llama3");
  isOffered = false;
  expect(labels.ofAsked("llama3")).toBe("llama3");
  expect(labels.ofAsked("phi4")).toBe("other");
});

test("the label of a model is no new one when there are as many as there may be, though machines make them up", () => {
  const labels = new ModelLabels((model) => model);
  const made = Array.from({ length: modelLabelsMax * 3 }, (_, at) => labels.ofOffered(`m${at}`));
  expect(new Set(made).size).toBe(modelLabelsMax + 1);
  expect(labels.ofAsked("m0")).toBe("m0");
  expect(labels.ofAsked(`m${modelLabelsMax}`)).toBe("other");
});

test("machines without a label of their own are counted together", async () => {
  const exposition = new Exposition();
  const fleet = countFleetEvents(exposition, new BoundedLabels(2));
  for (const machine of ["attic", "cellar", "garage", "barn", "attic"]) fleet.offerRefused(machine, "agent_offline");
  const told = MetricsText.read((await exposition.show(undefined)).text);
  const counts = told.samples("trunkline_offers_refused_total").map(({ labels, value }) => [labels["machine"], value]);
  expect(counts).toEqual([
    ["attic", 2],
    ["cellar", 1],
    ["other", 2],
  ]);
});
