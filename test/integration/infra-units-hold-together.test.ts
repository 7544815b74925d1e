import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { agentConfig } from "../../services/agent/config.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { infraFolder } from "../harness/infra/compose-file.ts";

describe.each([
  ["agent", agentConfig],
  ["gateway", gatewayConfig],
])("the unit of the %s", (kind, read) => {
  const lines = readFileSync(join(infraFolder, `systemd/trunkline-${kind}.service`), "utf8").split("\n");
  const values = (name: string): string[] =>
    lines.filter((line) => line.startsWith(`${name}=`)).map((line) => line.slice(name.length + 1));
  const credentials = values("LoadCredential").map((value) => value.split(":")[0] ?? "");

  test("gives it its secrets as credentials that it knows, and none in its environment", () => {
    const secrets = credentials.filter((name) => name.startsWith("TRUNKLINE_"));
    expect(secrets).toContain("TRUNKLINE_NATS_URL");
    for (const name of secrets) {
      expect(() => read({ [`${name}_FILE`]: "/nowhere" })).toThrow(`${name}_FILE must be a file`);
    }
    expect(values("Environment").join(" ")).not.toMatch(/PASSWORD|PEPPER|_URL/);
  });

  test("names NATS' authority among its credentials", () => {
    expect(values("Environment")).toContain("TRUNKLINE_NATS_CA=%d/nats-ca.pem");
    expect(credentials).toContain("nats-ca.pem");
  });

  test("bounds its memory", () => {
    expect(values("MemoryMax")).toEqual(["2G"]);
  });
});
