import { expect, test } from "vitest";
import { Exposition } from "../../../../services/gateway/meters/exposition.ts";
import { MetricsText } from "../../../harness/metrics-text.ts";

const route = "/v1/chat/completions";

test("a count is shown once for each combination of its labels, however often it is asked for", async () => {
  const exposition = new Exposition();
  const counts = exposition.counts({ name: "asked_total", help: "What was asked.", labels: ["route", "model"] });
  counts.of(route, "llama3").add(1);
  counts.of(route, "phi4").add(2);
  counts.of("llama3", route).add(5);
  counts.of(route, "llama3").add(1);
  for (const round of ["first", "second"]) {
    const told = MetricsText.read((await exposition.show(undefined)).text);
    expect(told.samples("asked_total"), round).toEqual([
      expect.objectContaining({ labels: { route, model: "llama3" }, value: 2 }),
      expect.objectContaining({ labels: { route, model: "phi4" }, value: 2 }),
      expect.objectContaining({ labels: { route: "llama3", model: route }, value: 5 }),
    ]);
  }
});

test("a histogram of several labels has its buckets, sum and count for each", async () => {
  const exposition = new Exposition();
  const tallies = exposition.tallies({ name: "s", help: "Time.", labels: ["route", "streamed"], buckets: [1, 2] });
  tallies.of(route, "true").count(1.5);
  tallies.of(route, "false").count(3);
  const { text } = await exposition.show(undefined);
  expect(text).toContain(`s_bucket{le="2",route="${route}",streamed="true"} 1`);
  expect(text).toContain(`s_bucket{le="2",route="${route}",streamed="false"} 0`);
  expect(text).toContain(`s_bucket{le="+Inf",route="${route}",streamed="false"} 1`);
  expect(text).toContain(`s_sum{route="${route}",streamed="true"} 1.5`);
  expect(text).toContain(`s_count{route="${route}",streamed="false"} 1`);
});
