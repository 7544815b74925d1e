/** The way of a request as steps in time. Pure. */
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { msText } from "./quantity.ts";

interface Step {
  readonly atMs: number;
  readonly text: string;
  readonly detail?: string;
}

const enders: Readonly<Record<ShownRequest["ended_by"], string>> = {
  machine: "by the machine",
  client: "by the client",
  key: "by the limits of its key",
  gateway: "by the gateway",
};

export function wayOf(request: ShownRequest): Step[] {
  const { tried, machine, accepted_ms: acceptedMs, first_token_ms: firstMs, total_ms: totalMs } = request;
  const offers = tried.flatMap(({ machine: name, model, at_ms: atMs, why, others, code }, place): Step[] => {
    const next = others.map((other) => `${other.machine} came after it (${other.why}, ${msText(other.cost_ms)})`);
    const endMs = tried[place + 1]?.at_ms ?? totalMs;
    return [
      { atMs, text: `offered to ${name}, as ${model}: ${why}`, ...(next.length > 0 && { detail: next.join("; ") }) },
      ...(code === null ? [] : [{ atMs: endMs, text: `${name} refused it or failed: ${code}` }]),
    ];
  });
  const steps: Step[] = [
    { atMs: 0, text: "arrived" },
    ...(request.tried_before > 0 ? [{ atMs: 0, text: `${request.tried_before} machines were tried before` }] : []),
    ...offers,
    ...(acceptedMs === null ? [] : [{ atMs: acceptedMs, text: `${machine ?? "a machine"} took it` }]),
    ...(firstMs === null ? [] : [{ atMs: firstMs, text: "first piece of the answer" }]),
    { atMs: totalMs, text: `ended ${enders[request.ended_by]}: ${request.code}, status ${request.status}` },
  ];
  return steps.toSorted((one, other) => one.atMs - other.atMs);
}
