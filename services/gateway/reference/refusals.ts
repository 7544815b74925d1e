import { faultEntry, type FaultCode } from "#shared/fault/fault-code.ts";

/** The code of a fault as callers see it; OpenAI has none for some. */
export function toldCode(code: FaultCode): string | null {
  const { wire } = faultEntry(code);
  return wire === undefined ? code : wire;
}

/** Faults by the statuses that they are told with. */
export function byStatus(codes: readonly FaultCode[]): [status: string, codes: readonly FaultCode[]][] {
  const groups = Object.groupBy(codes, (code) => faultEntry(code).status);
  return Object.entries(groups).map(([status, group = []]) => [status, group]);
}

/** What the faults of one status are, in a sentence. */
export function refusedWith(codes: readonly FaultCode[]): string {
  const told = new Set(codes.map((code) => toldCode(code) ?? "null"));
  return `Refused, with the code ${[...told].join(" or ")}.`;
}
