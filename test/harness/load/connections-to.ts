import { readFile } from "node:fs/promises";

const established = "01";

/** How many connections of this host a port on loopback has just now: as its server has them, on Linux. */
export async function connectionsTo(port: number): Promise<number> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = (await readFile("/proc/net/tcp", "utf8")).split("\n").slice(1);
  return rows.filter((row) => {
    const [, here = "", , state] = row.trim().split(/\s+/);
    return here.endsWith(local) && state === established;
  }).length;
}
