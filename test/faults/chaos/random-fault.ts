import type { SeededRandom } from "../../harness/seeded-random.ts";

/** One fault of a soak, as data: what befalls whom, and for how long. */
export type RandomFault =
  | { readonly kind: "kill"; readonly whom: Target; readonly forMs: number }
  | { readonly kind: "freeze"; readonly whom: Target; readonly forMs: number }
  | { readonly kind: "cut"; readonly whom: Line }
  | { readonly kind: "hold"; readonly whom: Line; readonly direction: "there" | "back"; readonly forMs: number }
  | { readonly kind: "delay"; readonly whom: Line; readonly latencyMs: number; readonly forMs: number };

/** A process or a server of the fleet, by its name. */
export type Target = string;
/** The way of a process to NATS, by the process's name. */
export type Line = string;

interface Fleet {
  readonly gateways: readonly [Target, ...Target[]];
  readonly machines: readonly [Target, ...Target[]];
}

/** What befalls a fleet next, and after what pause: decided by the seed alone. */
export function drawFault(
  random: SeededRandom,
  { gateways, machines }: Fleet,
): { fault: RandomFault; pauseMs: number } {
  const machine = random.oneOf(machines);
  const gateway = random.oneOf(gateways);
  const line = random.oneOf([machine, machine, gateway]);
  const shortMs = random.between(200, 2_000);
  const longMs = random.between(3_500, 7_000);
  const direction = random.oneOf(["there", "back"] as const);
  const latencyMs = random.between(20, 300);
  const pauseMs = random.between(300, 2_000);
  const fault = random.oneOf<RandomFault>([
    { kind: "kill", whom: machine, forMs: 0 },
    { kind: "kill", whom: machine, forMs: shortMs },
    { kind: "kill", whom: gateway, forMs: 0 },
    { kind: "kill", whom: "nats", forMs: random.between(0, 500) },
    { kind: "kill", whom: "nats", forMs: shortMs },
    { kind: "kill", whom: "redis", forMs: shortMs },
    { kind: "freeze", whom: machine, forMs: shortMs },
    { kind: "freeze", whom: machine, forMs: longMs },
    { kind: "freeze", whom: gateway, forMs: shortMs },
    { kind: "freeze", whom: gateway, forMs: longMs },
    { kind: "freeze", whom: "nats", forMs: shortMs },
    { kind: "freeze", whom: "redis", forMs: shortMs },
    { kind: "cut", whom: line },
    { kind: "cut", whom: line },
    { kind: "hold", whom: line, direction, forMs: shortMs },
    { kind: "hold", whom: line, direction, forMs: longMs },
    { kind: "delay", whom: line, latencyMs, forMs: shortMs },
    { kind: "delay", whom: line, latencyMs, forMs: longMs },
  ]);
  return { fault, pauseMs };
}

export function titleOf(fault: RandomFault): string {
  switch (fault.kind) {
    case "kill":
    case "freeze":
      return `${fault.kind} ${fault.whom} for ${fault.forMs} ms`;
    case "cut":
      return `cut the line of ${fault.whom}`;
    case "hold":
      return `hold the line of ${fault.whom} (${fault.direction}) for ${fault.forMs} ms`;
    case "delay":
      return `delay the line of ${fault.whom} by ${fault.latencyMs} ms for ${fault.forMs} ms`;
  }
}
