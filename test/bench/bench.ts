import { parseArgs } from "node:util";
import { allVariants } from "./all-variants.ts";
import type { Measurement } from "./measurement.ts";
import { buildPrograms } from "./native/build-programs.ts";
import { runRounds } from "./run-rounds.ts";
import { scenarios } from "./scenarios.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    rounds: { type: "string" },
    quick: { type: "boolean", default: false },
    seed: { type: "string", default: "7" },
  },
});
const say = (line: string): void => void process.stderr.write(`${line}\n`);
const names = values.only.split(",").filter((name) => name !== "");
const pick = <T extends { name: string }>(all: readonly T[]): readonly T[] => {
  const wanted = all.filter(({ name }) => names.includes(name));
  return wanted.length === 0 ? all : wanted;
};
const programs = await buildPrograms(say);
const measurements: Measurement[] = [];
await runRounds({
  programs,
  variants: pick(allVariants),
  scenarios: pick(scenarios),
  rounds: Number(values.rounds ?? 5),
  quick: values.quick,
  seed: Number(values.seed),
  say,
  onMeasurement: (m) => {
    measurements.push(m);
    const n = scenarios.find((s) => s.name === m.scenario)?.unit === "chunk" ? m.chunks : m.requests;
    const cpu = Object.values(m.cpuUs).reduce((a, b) => a + b, 0);
    console.log(
      m.scenario.padEnd(16),
      m.variant.padEnd(16),
      `n ${n}`,
      `cpu ${(cpu / n).toFixed(2)}`,
      Object.entries(m.cpuUs)
        .map(([k, v]) => `${k} ${(v / n).toFixed(2)}`)
        .join(" "),
      m.bad ? `BAD ${m.bad} ${m.firstBad}` : "",
      Object.keys(m.refused).length ? JSON.stringify(m.refused) : "",
      m.oneWay ? `ow ${m.oneWay.p50}/${m.oneWay.p99}` : "",
      m.total ? `tot ${m.total.p50}/${m.total.p99}` : "",
      m.firstByte ? `fb ${m.firstByte.p50}` : "",
      m.offeredChunks ? `del ${(m.chunks / m.offeredChunks).toFixed(4)}` : "",
      `steal ${m.stealShare}`,
      JSON.stringify(m.figures ?? {}),
    );
  },
  onFailure: (f) => say(`FAILED ${JSON.stringify(f)}`),
});
