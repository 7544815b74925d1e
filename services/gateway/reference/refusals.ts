import { faultEntry, type FaultCode } from "#shared/fault/fault-code.ts";

/** Returns the code of a fault as clients see it. Null where OpenAI has no code. */
export function toldCode(code: FaultCode): string | null {
  const { wire } = faultEntry(code);
  return wire === undefined ? code : wire;
}

/** Groups fault codes by their HTTP status. */
export function byStatus(codes: readonly FaultCode[]): [status: string, codes: readonly FaultCode[]][] {
  const groups = Object.groupBy(codes, (code) => faultEntry(code).status);
  return Object.entries(groups).map(([status, group = []]) => [status, group]);
}

/** Returns a sentence that lists the codes of one status. */
export function refusedWith(codes: readonly FaultCode[]): string {
  const told = new Set(codes.map((code) => toldCode(code) ?? "null"));
  return `Refused, with the code ${[...told].join(" or ")}.`;
}
