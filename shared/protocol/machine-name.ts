import { z } from "zod";

/** A machine's name, given by its operator. It is a token of subjects, so nothing else may pass for one. */
export const machineName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "must be 1 to 63 small letters, digits or hyphens, and not begin with a hyphen");

/** The nearest valid name to a host's own, for operators who chose none. */
export function machineNameOf(hostname: string): string {
  const name = hostname
    .toLowerCase()
    .replace(/\..*$/, "")
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 63);
  return machineName.safeParse(name).success ? name : "machine";
}
