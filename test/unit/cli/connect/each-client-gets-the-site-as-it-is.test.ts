import { expect, test } from "vitest";
import { parse } from "yaml";
import type { SiteFacts } from "../../../../services/cli/connect/client.ts";
import type { Places } from "../../../../services/cli/site/places.ts";
import { chatApps } from "../../../../services/cli/connect/chat-apps.ts";
import { codingAgents } from "../../../../services/cli/connect/coding-agents.ts";
import { editors } from "../../../../services/cli/connect/editors.ts";
import { planConnection } from "../../../../services/cli/connect/plan-connection.ts";
import { modelOf } from "./model-of.ts";

const clients = [...codingAgents, ...editors, ...chatApps];
const key = "trunkline_secret";
const linux: Places = { home: "/home/alice", platform: "linux", environment: {} };
const qwen = modelOf("qwen3-coder:30b", { window: 200_000 });
const seeing = modelOf("hf.co/org/seeing:q4", { window: 10_000, tools: false, vision: true });
const facts: SiteFacts = {
  origin: "https://models.example.org",
  key,
  model: qwen,
  models: [qwen, seeing],
  places: linux,
};

function filesOf(name: string, more: Partial<SiteFacts> = {}): Readonly<Record<string, string>> {
  const client = clients.find((each) => each.name === name) ?? expect.fail(`no client ${name}`);
  const plan = planConnection(client, { ...facts, ...more }, () => undefined);
  return Object.fromEntries(plan.map(({ file, after }) => [file, after]));
}

test.each(clients)(
  "$title is told the address, the key and the first model, in files of the person's home",
  (client) => {
    const plan = planConnection(client, facts, () => undefined);
    const all = plan.map(({ after }) => after).join("");
    expect(all).toContain(facts.origin);
    expect(all).toContain(key);
    if (client.name !== "goose") expect(`${all}${client.next(facts).join("")}`).toContain(qwen.id);
    for (const { file, holdsKey, after } of plan) {
      expect(file).toMatch(/^\/home\/alice\//);
      expect(holdsKey).toBe(after.includes(key));
    }
    expect(client.next(facts).join("")).not.toContain(key);
  },
);

test.each(clients)("$title is planned a second time without any change", (client) => {
  const texts = new Map(planConnection(client, facts, () => undefined).map(({ file, after }) => [file, after]));
  for (const { before, after, overwrites } of planConnection(client, facts, (file) => texts.get(file))) {
    expect(after).toBe(before);
    expect(overwrites).toEqual([]);
  }
});

test("Claude Code is told the true window, and a threshold for compaction that it takes", () => {
  const env = (more: Partial<SiteFacts> = {}): unknown =>
    JSON.parse(filesOf("claude", more)["/home/alice/.claude/settings.json"] ?? "").env;
  expect(env()).toMatchObject({
    ANTHROPIC_BASE_URL: "https://models.example.org",
    ANTHROPIC_AUTH_TOKEN: key,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: "qwen3-coder:30b",
    CLAUDE_CODE_MAX_CONTEXT_TOKENS: "200000",
    CLAUDE_CODE_MAX_OUTPUT_TOKENS: "32000",
    CLAUDE_CODE_AUTO_COMPACT_WINDOW: "200000",
  });
  const small = env({ model: modelOf("small", { window: 32_768 }) });
  expect(small).toMatchObject({ CLAUDE_CODE_MAX_CONTEXT_TOKENS: "32768", CLAUDE_CODE_MAX_OUTPUT_TOKENS: "6553" });
  expect(small).not.toHaveProperty("CLAUDE_CODE_AUTO_COMPACT_WINDOW");
  expect(env({ model: modelOf("claude-sonnet-4", { window: 32_768 }) })).toMatchObject({
    CLAUDE_CODE_AUTO_COMPACT_WINDOW: "100000",
    CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: "26",
  });
});

test("Codex is given a profile of its own", () => {
  expect(filesOf("codex")).toEqual({
    "/home/alice/.codex/trunkline.config.toml": `model = "qwen3-coder:30b"
model_provider = "trunkline"
model_context_window = 200000
model_auto_compact_token_limit = 168000

[model_providers.trunkline]
name = "Trunkline"
base_url = "https://models.example.org/v1"
wire_api = "responses"
experimental_bearer_token = "trunkline_secret"
`,
  });
});

test("OpenCode is told what each model can do", () => {
  const config: unknown = JSON.parse(filesOf("opencode")["/home/alice/.config/opencode/opencode.json"] ?? "");
  expect(config).toMatchObject({
    model: "trunkline/qwen3-coder:30b",
    provider: {
      trunkline: {
        models: {
          "qwen3-coder:30b": { tool_call: true, attachment: false, limit: { context: 200_000, output: 32_000 } },
          "hf.co/org/seeing:q4": { tool_call: false, attachment: true, limit: { context: 10_000, output: 2_000 } },
        },
      },
    },
  });
});

test("Qwen Code is told of every model, whether it sees images, and where its key is", () => {
  const config: unknown = JSON.parse(filesOf("qwen")["/home/alice/.qwen/settings.json"] ?? "");
  expect(config).toMatchObject({
    env: { TRUNKLINE_QWEN_KEY: key },
    model: { name: "qwen3-coder:30b" },
    modelProviders: {
      openai: [
        { id: "qwen3-coder:30b", envKey: "TRUNKLINE_QWEN_KEY", generationConfig: { contextWindowSize: 200_000 } },
        {
          id: "hf.co/org/seeing:q4",
          baseUrl: "https://models.example.org/v1",
          generationConfig: { modalities: { image: true } },
        },
      ],
    },
  });
});

test("aider and Continue read their files as YAML", () => {
  expect(parse(filesOf("aider")["/home/alice/.config/trunkline/aider.conf.yml"] ?? "")).toEqual({
    model: "openai/qwen3-coder:30b",
    "weak-model": "openai/qwen3-coder:30b",
    "openai-api-base": "https://models.example.org/v1",
    "openai-api-key": key,
    "model-metadata-file": "/home/alice/.config/trunkline/aider.models.json",
  });
  expect(parse(filesOf("continue")["/home/alice/.continue/agents/trunkline.yaml"] ?? "")).toMatchObject({
    name: "Trunkline",
    models: [
      { model: "qwen3-coder:30b", capabilities: ["tool_use"], defaultCompletionOptions: { contextLength: 200_000 } },
      { model: "hf.co/org/seeing:q4", capabilities: ["image_input"] },
    ],
  });
});

test("Open WebUI reads variables, and by its Ollama connection the key of the first address and a name with a tag", () => {
  const model = modelOf("llama3");
  expect(filesOf("open-webui", { model })).toEqual({
    "/home/alice/.config/trunkline/open-webui.env": `OPENAI_API_BASE_URL=https://models.example.org/v1
OPENAI_API_KEY=trunkline_secret
DEFAULT_MODELS=llama3
`,
  });
  expect(filesOf("open-webui-ollama", { model })).toEqual({
    "/home/alice/.config/trunkline/open-webui-ollama.env": `OLLAMA_BASE_URL=https://models.example.org
OLLAMA_API_CONFIGS={"0":{"enable":true,"key":"trunkline_secret"}}
DEFAULT_MODELS=llama3:latest
`,
  });
});

test("Home Assistant and Copilot for Obsidian have a file to copy from, each with the address that it takes", () => {
  expect(filesOf("home-assistant", { model: modelOf("llama3") })).toEqual({
    "/home/alice/.config/trunkline/home-assistant.txt": `URL:     https://models.example.org
API key: trunkline_secret
Model:   llama3:latest
`,
  });
  const [copilot] = Object.values(filesOf("obsidian-copilot"));
  expect(copilot).toContain("Base URL: https://models.example.org/v1\n");
});

test("the ollama command reaches the site by a proxy on this host, which adds the key of another file", () => {
  const { "/home/alice/.config/trunkline/ollama.Caddyfile": proxy, ...others } = filesOf("ollama");
  expect(others).toEqual({ "/home/alice/.config/trunkline/ollama.env": "TRUNKLINE_KEY=trunkline_secret\n" });
  expect(proxy).not.toContain(key);
  expect(proxy).toContain('header_up Authorization "Bearer {env.TRUNKLINE_KEY}"');
  expect(proxy).toContain("header_up Host models.example.org");
  expect(proxy).toContain("admin off");
  const [listens] = /http:\/\/127\.0\.0\.1:\d+/.exec(proxy ?? "") ?? expect.fail("no address on this host");
  const client = clients.find(({ name }) => name === "ollama");
  expect(client?.next(facts).join()).toContain(`OLLAMA_HOST=${listens.replace("http://", "")} ollama run`);
});

test("configurations lie where each system keeps them, and where variables of the client say", () => {
  const fileOf = (name: string, places: Partial<Places>): string | undefined =>
    Object.keys(filesOf(name, { places: { ...linux, ...places } }))[0];
  expect(fileOf("vscode", {})).toBe("/home/alice/.config/Code/User/chatLanguageModels.json");
  expect(fileOf("vscode", { platform: "darwin" })).toBe(
    "/home/alice/Library/Application Support/Code/User/chatLanguageModels.json",
  );
  expect(fileOf("zed", { platform: "win32", environment: { APPDATA: "/roaming" } })).toBe("/roaming/Zed/settings.json");
  expect(fileOf("claude", { environment: { CLAUDE_CONFIG_DIR: "/c" } })).toBe("/c/settings.json");
  expect(fileOf("codex", { environment: { CODEX_HOME: "/c" } })).toBe("/c/trunkline.config.toml");
  expect(fileOf("opencode", { environment: { OPENCODE_CONFIG: "/c/my.jsonc" } })).toBe("/c/my.jsonc");
  expect(fileOf("goose", { environment: { XDG_CONFIG_HOME: "/x" } })).toBe(
    "/x/goose/custom_providers/custom_trunkline.json",
  );
});
