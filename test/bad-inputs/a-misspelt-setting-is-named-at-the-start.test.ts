import { expect, test } from "vitest";
import type { Environment } from "#shared/process/config.ts";
import { clientVariables, settingNames, unknownSettings } from "#shared/process/setting-names.ts";
import { agentConfig } from "../../services/agent/config.ts";
import { baseUrlOf, configuredKey, operationsOf } from "../../services/cli/site/find-gateway.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { readSources } from "../architecture/read-sources.ts";
import { trunkline } from "../harness/trunkline-command.ts";

test("a gateway that does not start for a misspelt setting names the setting that was meant", async () => {
  const secret = "nats://gateway:opensesame@127.0.0.1:4222";
  const { exitCode, stderr } = await trunkline(["gateway"], { TRUNKLINE_NAST_URL: secret });
  expect(stderr.split("\n")[0]).toBe(
    "trunkline: TRUNKLINE_NAST_URL is not a setting and changes nothing: did you mean TRUNKLINE_NATS_URL?",
  );
  expect(stderr).toContain("needs TRUNKLINE_NATS_URL");
  expect(stderr).not.toContain("opensesame");
  expect(exitCode).toBe(78);
});

test.each([
  ["TRUNKLINE_REDIS_ULR", "did you mean TRUNKLINE_REDIS_URL?"],
  ["TRUNKLINE_KEY_PEPER", "did you mean TRUNKLINE_KEY_PEPPER?"],
  ["TRUNKLINE_OPERATION_PORT", "did you mean TRUNKLINE_OPERATIONS_PORT?"],
  ["TRUNKLINE_SERVICE_HOST", "docs/settings.md lists all settings"],
])("the variable %s is told with the remedy «%s»", (name, remedy) => {
  expect(unknownSettings({ [name]: "1" })).toEqual([`${name} is not a setting and changes nothing: ${remedy}`]);
});

test("no setting of any process, of the tests or of another program is told as unknown", () => {
  const known = settingNames.flatMap((name) => [name, `${name}_FILE`]);
  const others = ["TRUNKLINE_TEST_NATS_URL", "TRUNKLINE_KEY", ...clientVariables, "PATH", "REDIS_ULR"];
  expect(unknownSettings(Object.fromEntries([...known, ...others].map((name) => [name, "1"])))).toEqual([]);
  expect(unknownSettings({ TRUNKLINE_NAST_URL: "", TRUNKLINE_REDIS_ULR: undefined })).toEqual([]);
});

test("the list of settings is exactly what the gateway, the agent and the commands read", () => {
  const read = new Set<string>();
  const environment: Environment = new Proxy({}, { get: (_, name) => void read.add(String(name)) });
  for (const wanted of ["model", "admin"] as const) configuredKey(wanted, environment);
  for (const readSettings of [gatewayConfig, agentConfig]) readSettings(environment);
  for (const readUrl of [baseUrlOf, operationsOf]) readUrl(environment, undefined);
  const settings = [...read].filter((name) => name.startsWith("TRUNKLINE_") && !name.endsWith("_FILE"));
  expect(settingNames).toEqual([...settings, "TRUNKLINE_MODELS_FILE"].toSorted());
});

test("a text of the product names no setting that does not exist", () => {
  const product = readSources().filter(({ path }) => !path.startsWith("test/"));
  const named = new Set(product.flatMap(({ text }) => text.match(/\bTRUNKLINE_[A-Z][A-Z_]*[A-Z]\b/g) ?? []));
  const known = new Set([...settingNames, ...settingNames.map((name) => `${name}_FILE`), ...clientVariables]);
  expect([...named.difference(known)]).toEqual([]);
});
