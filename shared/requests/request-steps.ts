/** The way of a request as steps in time. Pure. */
import type { ShownRequest } from "./shown-request.ts";

interface RequestStep {
  readonly atMs: number;
  readonly text: string;
  /** The machines that came next. */
  readonly aside: readonly string[];
}

const enders: Readonly<Record<ShownRequest["ended_by"], string>> = {
  machine: "by the machine",
  client: "by the client",
  key: "by the limits or the end of its key",
  operator: "by an operator",
  gateway: "by the gateway",
};

const whole = new Intl.NumberFormat("en");

export function stepsOf(request: ShownRequest): RequestStep[] {
  const { tried, machine, accepted_ms: acceptedMs, first_token_ms: firstMs, total_ms: totalMs } = request;
  const { load_wait_ms: loadMs, tokens_per_second: speed } = request;
  const step = (atMs: number, text: string, aside: readonly string[] = []): RequestStep => ({ atMs, text, aside });
  const offers = tried.flatMap(({ machine: name, model, at_ms: atMs, why, others, from_tokens: from, code }, index) => {
    const aside = others.map((each) => `${each.machine} came after it: ${each.why}, ${whole.format(each.cost_ms)} ms`);
    const goal = from === null ? "" : `, to go on after ${whole.format(from)} tokens`;
    const offered = step(atMs, `offered to ${name}, as ${model}${goal}: ${why}`, aside);
    const endMs = tried[index + 1]?.at_ms ?? totalMs;
    return code === null ? [offered] : [offered, step(endMs, `${name} refused it or failed: ${code}`)];
  });
  const steps = [
    step(0, "arrived"),
    ...(request.anew_after === null
      ? []
      : [step(0, `${request.anew_after} has lost the answer of its Idempotency-Key, so it is made anew`)]),
    ...(request.tried_before > 0 ? [step(0, `${request.tried_before} machines were tried before`)] : []),
    ...offers,
  ];
  if (acceptedMs !== null) {
    const loading = loadMs === null ? "" : `; it waited ${(loadMs / 1_000).toFixed(1)} s for its model to load`;
    const began = tried[tried.findIndex(({ from_tokens: from }) => from !== null) - 1]?.machine ?? machine;
    steps.push(step(acceptedMs, `${began ?? "a machine"} took it${loading}`));
  }
  if (firstMs !== null) steps.push(step(firstMs, "first piece of the answer"));
  const pace = speed === null ? "" : `, ${speed} tokens/s`;
  steps.push(step(totalMs, `ended ${enders[request.ended_by]}: ${request.code}, status ${request.status}${pace}`));
  return steps.toSorted((one, other) => one.atMs - other.atMs);
}
