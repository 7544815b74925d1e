import { alignedTable } from "../../services/cli/terminal/table-text.ts";
import type { CheckedGoal } from "./goals.ts";
import type { LoopHold } from "./loop-holds.ts";
import { cpuPerUnit, type Measurement } from "./measurement.ts";
import { overRounds, type Figure } from "./over-rounds.ts";
import type { Scenario } from "./scenarios.ts";

const processes = ["gateway", "agent", "nats", "redis"];

/** A row for each variant in each scenario: CPU time of the path and of its processes, latency, and Trunkline's ratio. */
export function resultTable(scenarios: readonly Scenario[], measurements: readonly Measurement[]): string {
  const rows = scenarios.flatMap((scenario) => {
    const { name, unit } = scenario;
    const variants = [...new Set(measurements.filter((one) => one.scenario === name).map((one) => one.variant))];
    return variants.toSorted().map((variant) => {
      const median = (figure: Figure): string =>
        text(overRounds(measurements, { scenario: name, variant, figure }).spread?.median);
      const cpu: Figure = (measured) => cpuPerUnit(measured, unit);
      const latency = (percentile: "p50" | "p99"): Figure => {
        return (measured) => inMs(measured[scenario.latency ?? (unit === "chunk" ? "oneWay" : "total")]?.[percentile]);
      };
      const ratio = overRounds(measurements, { scenario: name, variant: "trunkline", over: variant, figure: cpu });
      const { spread, rounds, leftOut } = ratio;
      const compared =
        spread && `${text(spread.median)} (${text(spread.min)} to ${text(spread.max)}, ${rounds} rounds)`;
      return [
        name,
        variant,
        unit,
        median(cpu),
        ...processes.map((process) => median((measured) => cpuPerUnit(measured, unit, process))),
        median(latency("p50")),
        median(latency("p99")),
        median(({ chunks, offeredChunks }) => offeredChunks && chunks / offeredChunks),
        variant === "trunkline" ? leftOut.join("; ") : (compared ?? leftOut.join("; ")),
      ];
    });
  });
  const numbers = ["CPU µs", ...processes, "p50 ms", "p99 ms", "delivered"];
  return alignedTable(["scenario", "variant", "per", ...numbers, "trunkline over it"], rows, { right: numbers });
}

export function loopTable(holds: readonly LoopHold[]): string {
  const rows = holds.map(({ name, status, gatewayMs, agentMs }) => [
    name,
    String(status),
    gatewayMs.toFixed(0),
    agentMs.toFixed(0),
  ]);
  const right = ["status", "gateway", "agent"];
  return alignedTable(["ms of CPU that one request holds an event loop", ...right], rows, { right });
}

export function goalsTable(checked: readonly CheckedGoal[]): string {
  const rows = checked.map(({ verdict, name, goal, measured, note }) => [
    verdict,
    name,
    text(goal),
    text(measured),
    note,
  ]);
  return alignedTable(["verdict", "figure", "goal", "measured", "note"], rows, { right: ["goal", "measured"] });
}

/** A number in about three digits. */
function text(value: number | undefined): string {
  if (value === undefined) return "–";
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3).replace(/\.?0+$/, "");
}

function inMs(us: number | undefined): number | undefined {
  return us === undefined ? undefined : us / 1_000;
}
