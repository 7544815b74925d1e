import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agentSettingNames as names } from "../../../../services/agent/config.ts";
import { settingsIn, settingsText, settingsToKeep } from "../../../../services/cli/service/service-settings.ts";
import { folderOfTest } from "../../../harness/temporary-folder.ts";

const kept = (environment: Readonly<Record<string, string>>): Record<string, string> =>
  settingsToKeep(environment, { names, folder: "/srv/here", platform: "linux" });

test("settings of the agent and the way through proxies are kept, with absolute paths", () => {
  const environment = {
    TRUNKLINE_MACHINE: "attic",
    TRUNKLINE_GGUF: "a.gguf, /models/b.gguf",
    TRUNKLINE_RUNTIME_KEY_FILE: "../key",
    TRUNKLINE_RUNTIME_URL: "http://127.0.0.1:8000",
    HTTPS_PROXY: "http://proxy.example:3128",
    TRUNKLINE_REDIS_URL: "redis://127.0.0.1",
    TRUNKLINE_STATE_DIR: "elsewhere",
    PATH: "/usr/bin",
  };
  expect(kept(environment)).toEqual({
    TRUNKLINE_MACHINE: "attic",
    TRUNKLINE_GGUF: "/srv/here/a.gguf,/models/b.gguf",
    TRUNKLINE_RUNTIME_KEY_FILE: "/srv/key",
    TRUNKLINE_RUNTIME_URL: "http://127.0.0.1:8000",
    HTTPS_PROXY: "http://proxy.example:3128",
  });
});

test.each([
  ["TRUNKLINE_RUNTIME_KEY", "sk-secret", "name that file in TRUNKLINE_RUNTIME_KEY_FILE"],
  ["TRUNKLINE_NATS_URL", "tls://attic:secret@broker.example", "name that file in TRUNKLINE_NATS_URL_FILE"],
  ["HTTPS_PROXY", "http://ann:secret@proxy.example:3128", "leave the password out"],
  ["TRUNKLINE_RUNTIME_URL", "http://ann:secret@127.0.0.1:8000", "leave the password out"],
])("%s with a secret is refused by name, without the secret", (name, value, remedy) => {
  const refused = expect.objectContaining({ message: expect.stringMatching(`${name} is one: .*${remedy}`) });
  expect(() => kept({ [name]: value })).toThrow(refused);
  expect(() => kept({ [name]: value })).not.toThrow("secret@");
});

test("a settings file is read as it was written, whatever its values hold", () => {
  const folder = folderOfTest();
  const file = join(folder, "agent.env");
  const settings = { A: 'x y $z #"\\n', B: "C:\\Users\\new", C: "llama*,qwen*" };
  writeFileSync(file, settingsText({ ...settings, EMPTY: "", UNSET: undefined }));
  expect(settingsIn(file)).toEqual(settings);
});

test("a value that no settings file can hold is refused", () => {
  expect(() => kept({ TRUNKLINE_RUNTIME_URL: "http://127.0.0.1/it's" })).toThrow("TRUNKLINE_RUNTIME_URL holds a quote");
});
