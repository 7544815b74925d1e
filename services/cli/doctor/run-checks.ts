import { Fault, reasonOf } from "#shared/fault/fault.ts";
import { type Clock, within } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { StartFailure } from "#shared/process/lifecycle.ts";
import { SiteFailure } from "#shared/site/reach-site.ts";

export type CheckOutcome = "ok" | "skipped" | "warning" | "failed";

/** The result of a look. Each warning and each failure has a remedy. */
export type Finding =
  | { readonly outcome: "ok" | "skipped"; readonly finding: string }
  | { readonly outcome: "warning" | "failed"; readonly finding: string; readonly remedy: string };

export interface Check {
  readonly name: string;
  /** Checks that must not have failed before this one makes sense. */
  readonly needs?: readonly string[];
  /** Looks at one thing. A `StartFailure` or `SiteFailure` that it throws is a failed check. */
  look(signal: AbortSignal): Promise<Finding>;
}

/** The process that looks: a machine and a site are judged by its settings, its clock and its version. */
export interface DoctorContext {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly version: string;
}

export interface CheckResult {
  readonly name: string;
  readonly outcome: CheckOutcome;
  readonly finding: string;
  readonly remedy: string | null;
}

/** Longest time of one check. The connection to a silent host has timeouts of its own, which are shorter. */
export const checkMsMax = 15_000;

/**
 * Runs checks in parallel, each after those that it needs, and returns their results in the order of the checks. A check
 * whose need failed or was skipped is skipped.
 */
export async function runChecks(
  checks: readonly Check[],
  { clock, onDone }: { readonly clock: Clock; readonly onDone: (result: CheckResult) => void },
): Promise<readonly CheckResult[]> {
  const running = new Map<string, Promise<CheckResult>>();
  for (const check of checks) running.set(check.name, after(check));
  return Promise.all(running.values());

  async function after(check: Check): Promise<CheckResult> {
    // The next checks are in the map by the end of this turn.
    await Promise.resolve();
    const needs = await Promise.all((check.needs ?? []).map(async (name) => running.get(name)));
    const missing = needs.find((result) => result?.outcome === "failed" || result?.outcome === "skipped");
    const found = missing === undefined ? await lookWithin(check, clock) : skipped(`needs the check «${missing.name}»`);
    const { outcome, finding } = found;
    const result = { name: check.name, outcome, finding, remedy: "remedy" in found ? found.remedy : null };
    onDone(result);
    return result;
  }
}

export const ok = (finding: string): Finding => ({ outcome: "ok", finding });
export const skipped = (finding: string): Finding => ({ outcome: "skipped", finding });
export const warning = (finding: string, remedy: string): Finding => ({ outcome: "warning", finding, remedy });
export const failed = (finding: string, remedy: string): Finding => ({ outcome: "failed", finding, remedy });

/** Returns undefined for a failure: the check of the same thing reports it. */
export function tryTo<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

async function lookWithin(check: Check, clock: Clock): Promise<Finding> {
  const message = `There was no result within ${checkMsMax / 1_000} s (checkMsMax): try again.`;
  return within(
    clock,
    checkMsMax,
    () => new StartFailure(0, message),
    (signal) => check.look(signal),
  ).catch(findingOf);
}

/** Messages for people are written as «reason: remedy.» */
export function findingOf(error: unknown): Finding {
  const isExpected = error instanceof StartFailure || error instanceof SiteFailure;
  if (!isExpected) {
    const reason = error instanceof Fault ? error.reason : reasonOf(error);
    return failed(`It could not be looked at (${reason}).`, "Tell the makers of Trunkline, with what this prints.");
  }
  const [, finding = error.message, remedy = "Try again in a moment."] = /^(.*?): (.*)$/s.exec(error.message) ?? [];
  return failed(sentence(finding), sentence(remedy));
}

/** Begins a text with a capital letter, unless it begins with a URL, and ends it with a full stop. */
export function sentence(text: string): string {
  const begun = text.replace(/^[a-z](?=[a-z]* )/, (letter) => letter.toUpperCase());
  return /[.?!]$/.test(begun) ? begun : `${begun}.`;
}
