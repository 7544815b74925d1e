import { z } from "zod";

/** A machine's name, chosen by its operator. The name is a token of subjects, so no other characters are allowed. */
export const machineName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "must be 1 to 63 small letters, digits or hyphens, and not begin with a hyphen");

/** Derives a valid machine name from a host name, for operators who did not choose one. */
export function machineNameOf(hostname: string): string {
  const name = hostname
    .toLowerCase()
    .replace(/\..*$/, "")
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 63);
  return machineName.safeParse(name).success ? name : "machine";
}
