/**
 * Returns warnings about the configuration of Redis, read from its `INFO`. Redis must not drop keys, neither to make
 * room for others nor at a restart.
 */
export function redisDoubts(info: string): readonly string[] {
  const said = new Map(
    info.split(/\r?\n/).map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1)];
    }),
  );
  const policy = said.get("maxmemory_policy");
  const isBounded = said.get("maxmemory") !== "0";
  return [
    ...(isBounded && policy !== undefined && policy !== "noeviction"
      ? [`Redis may drop keys when it is full (maxmemory-policy ${policy}): set it to noeviction`]
      : []),
    ...(said.get("aof_enabled") === "0"
      ? ["Redis may lose the latest keys and revocations when it restarts: set appendonly yes"]
      : []),
  ];
}
