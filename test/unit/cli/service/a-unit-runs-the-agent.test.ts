import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { HostFacts } from "../../../../services/cli/service/service-manager.ts";
import { systemd } from "../../../../services/cli/service/systemd.ts";
import { infraFolder } from "../../../harness/infra/compose-file.ts";
import { linuxRoot, linuxUser } from "../../../harness/host-facts.ts";

const unit = "trunkline-agent.service";
const odd = '/srv/a b/100%/$x/"q"/back\\slash/trunkline.js';

function unitOf(facts: HostFacts, settings: Readonly<Record<string, string>> = {}, script = odd): string {
  const manager = systemd(facts);
  const program = [process.execPath, script] as const;
  return Buffer.from(manager.definition(program, settings)).toString();
}

const linesOf = (text: string): Set<string> => new Set(text.split("\n").filter((line) => /^\w+=/.test(line)));

test("a system unit has every protection of the unit in infra/systemd", () => {
  const infra = readFileSync(join(infraFolder, "systemd", unit), "utf8");
  const elsewhere = /^(?:ExecStart|EnvironmentFile|Environment|LoadCredential)=/;
  const missing = linesOf(infra).difference(linesOf(unitOf(linuxRoot)));
  expect([...missing].filter((line) => !elsewhere.test(line))).toEqual([]);
});

test("a user's unit asks for no namespace, which many kernels refuse to users", () => {
  const text = unitOf(linuxUser);
  expect(text).not.toMatch(/^(?:Protect|Private|DynamicUser|StateDirectory|CapabilityBoundingSet)/m);
  expect(linesOf(text).difference(linesOf(unitOf(linuxRoot)))).toEqual(
    new Set(["EnvironmentFile=/home/ann/.config/trunkline/agent.env", "WantedBy=default.target"]),
  );
});

test("a system unit passes secrets that settings name by file as credentials", () => {
  const text = unitOf(linuxRoot, {
    TRUNKLINE_RUNTIME_KEY_FILE: "/root/100%",
    TRUNKLINE_MODELS_FILE: "/srv/models.json",
  });
  expect(text).toContain(
    "LoadCredential=TRUNKLINE_RUNTIME_KEY:/root/100%%\nUnsetEnvironment=TRUNKLINE_RUNTIME_KEY_FILE\n",
  );
  expect(text).not.toContain("TRUNKLINE_MODELS");
});

test("an agent that runs models itself gets the GPU and as much memory as they take", () => {
  const text = unitOf(linuxRoot, { TRUNKLINE_GGUF: "/srv/model.gguf" });
  expect(text).toContain("PrivateDevices=no");
  expect(text).not.toContain("MemoryMax");
});

test("folders of a user follow the XDG variables", () => {
  const environment = { XDG_DATA_HOME: "/x/data", XDG_CONFIG_HOME: "/x/config", XDG_STATE_HOME: "/x/state" };
  expect(systemd({ ...linuxUser, environment }).places).toEqual({
    programs: "/x/data/trunkline-agent",
    settingsFile: "/x/config/trunkline/agent.env",
    stateDir: "/x/state/trunkline-agent",
    definition: `/x/config/systemd/user/${unit}`,
  });
});
