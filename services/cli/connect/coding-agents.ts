import { join } from "node:path";
import type { Model } from "#shared/protocol/model.ts";
import { type Client, compactionTokens, jsonText, outputTokens, site, type Setting } from "./client.ts";
import { configFolder, ownFile, type Places } from "../site/places.ts";

/** The smallest window that Claude Code takes from `CLAUDE_CODE_AUTO_COMPACT_WINDOW`. */
const claudeCompactWindowMin = 100_000;

/** Tried with Claude Code 2.1.330. All of its model names lead to one model: a machine keeps one in memory. */
const claudeCode: Client = {
  name: "claude",
  title: "Claude Code",
  needsTools: true,
  files({ origin, key, model, places }) {
    const variables: Record<string, string> = {
      ANTHROPIC_BASE_URL: origin,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: model.id,
      ANTHROPIC_DEFAULT_OPUS_MODEL: model.id,
      ANTHROPIC_DEFAULT_SONNET_MODEL: model.id,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model.id,
      CLAUDE_CODE_SUBAGENT_MODEL: model.id,
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(model.context_window),
      CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(outputTokens(model)),
      ...claudeCompaction(model),
    };
    const settings = Object.entries(variables).map(([name, value]) => ({ path: ["env", name], value }));
    const folder = places.environment["CLAUDE_CONFIG_DIR"] || join(places.home, ".claude");
    return [{ kind: "settings", file: join(folder, "settings.json"), settings }];
  },
  next: () => ["Start it: claude", "It uses Trunkline from now on, in editors too, until --undo."],
};

/**
 * Returns the variables that make Claude Code compact in time. It takes `CLAUDE_CODE_MAX_CONTEXT_TOKENS` for names that it
 * does not know; for a route with a name such as `claude-sonnet-4` it believes its own table.
 */
function claudeCompaction(model: Model): Readonly<Record<string, string>> {
  const window = model.context_window;
  if (window >= claudeCompactWindowMin) return { CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(window) };
  if (!model.id.startsWith("claude")) return {};
  return {
    CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(claudeCompactWindowMin),
    CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: String(Math.floor((compactionTokens(model) / claudeCompactWindowMin) * 100)),
  };
}

/** Tried with Codex CLI 0.169.0, which loads a profile from a file of its own. */
const codex: Client = {
  name: "codex",
  title: "Codex CLI",
  needsTools: true,
  files({ origin, key, model, places }) {
    const folder = places.environment["CODEX_HOME"] || join(places.home, ".codex");
    const text = `model = ${tomlText(model.id)}
model_provider = "${site.id}"
model_context_window = ${model.context_window}
model_auto_compact_token_limit = ${compactionTokens(model)}

[model_providers.${site.id}]
name = "${site.name}"
base_url = ${tomlText(`${origin}/v1`)}
wire_api = "responses"
experimental_bearer_token = ${tomlText(key)}
`;
    return [{ kind: "whole", file: join(folder, `${site.id}.config.toml`), text }];
  },
  next: () => [
    `Start it: codex --profile ${site.id}`,
    "It warns that it has no metadata of the model, and still takes the window and the threshold for compaction.",
    "Codex without --profile stays as it was. Its extensions for editors know no profiles.",
  ],
};

/** Returns a basic string of TOML, which has the escapes of JSON. */
function tomlText(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", "\\u007f");
}

/** Tried with OpenCode 1.18.33. */
const openCode: Client = {
  name: "opencode",
  title: "OpenCode",
  needsTools: true,
  files({ origin, key, model, models, places }) {
    const provider = {
      npm: "@ai-sdk/openai-compatible",
      name: site.name,
      options: { baseURL: `${origin}/v1`, apiKey: key },
      models: Object.fromEntries(models.map((each) => [each.id, openCodeModel(each)])),
    };
    const settings: Setting[] = [
      // OpenCode writes it into a file without one, after which an undo is refused.
      { path: ["$schema"], value: "https://opencode.ai/config.json", givesWay: true },
      { path: ["provider", site.id], value: provider },
      { path: ["model"], value: `${site.id}/${model.id}`, givesWay: true },
    ];
    const { OPENCODE_CONFIG, XDG_CONFIG_HOME } = places.environment;
    const folder = XDG_CONFIG_HOME || join(places.home, ".config");
    return [{ kind: "settings", file: OPENCODE_CONFIG || join(folder, "opencode", "opencode.json"), settings }];
  },
  next: ({ model }) => [`Start it: opencode --model '${site.id}/${model.id}', or choose the model with /models.`],
};

function openCodeModel(model: Model): object {
  const { vision, tools, thinking } = model.capabilities;
  return {
    name: model.id,
    tool_call: tools,
    reasoning: thinking,
    attachment: vision,
    modalities: { input: vision ? ["text", "image"] : ["text"], output: ["text"] },
    limit: { context: model.context_window, output: outputTokens(model) },
  };
}

const qwenKeyVariable = "TRUNKLINE_QWEN_KEY";

/** Tried with Qwen Code 0.24.4. */
const qwenCode: Client = {
  name: "qwen",
  title: "Qwen Code",
  needsTools: true,
  files({ origin, key, model, models, places }) {
    const baseUrl = `${origin}/v1`;
    const settings: Setting[] = [
      { path: ["env", qwenKeyVariable], value: key },
      ...models.map((each) => qwenModel(each, baseUrl)),
      { path: ["security", "auth", "selectedType"], value: "openai" },
      { path: ["model", "name"], value: model.id },
    ];
    // Qwen Code writes the version of its settings into a file without one, after which an undo is refused.
    const beginning = { $version: 4 };
    return [{ kind: "settings", file: join(places.home, ".qwen", "settings.json"), settings, beginning }];
  },
  next: () => ["Start it: qwen"],
};

function qwenModel(model: Model, baseUrl: string): Setting {
  const value = {
    id: model.id,
    name: `${model.id} (${site.name})`,
    baseUrl,
    envKey: qwenKeyVariable,
    generationConfig: {
      contextWindowSize: model.context_window,
      modalities: { image: model.capabilities.vision },
      samplingParams: { max_tokens: outputTokens(model) },
    },
  };
  return { path: ["modelProviders", "openai"], element: { id: model.id, baseUrl }, value };
}

/** Tried with aider 0.86.2, which reads its own configuration too. It edits by text and calls no tools. */
const aider: Client = {
  name: "aider",
  title: "aider",
  files({ origin, key, model, places }) {
    const id = JSON.stringify(`openai/${model.id}`);
    const metadata = ownFile(places, "aider.models.json");
    const text = `model: ${id}
weak-model: ${id}
openai-api-base: ${JSON.stringify(`${origin}/v1`)}
openai-api-key: ${JSON.stringify(key)}
model-metadata-file: ${JSON.stringify(metadata)}
`;
    const limits = {
      max_tokens: outputTokens(model),
      max_input_tokens: model.context_window,
      max_output_tokens: outputTokens(model),
      input_cost_per_token: 0,
      output_cost_per_token: 0,
      litellm_provider: "openai",
      mode: "chat",
    };
    return [
      { kind: "whole", file: aiderFile(places), text },
      { kind: "whole", file: metadata, text: jsonText({ [`openai/${model.id}`]: limits }) },
    ];
  },
  next: ({ places }) => [`Start it: aider --config '${aiderFile(places)}'`],
};

function aiderFile(places: Places): string {
  return ownFile(places, "aider.conf.yml");
}

const gooseProvider = `custom_${site.id}`;

/** Read in Goose's sources; not run. The key is a header: otherwise Goose looks for it in the system's key ring. */
const goose: Client = {
  name: "goose",
  title: "Goose",
  needsTools: true,
  files({ origin, key, models, places }) {
    const provider = {
      name: gooseProvider,
      engine: "openai",
      display_name: site.name,
      description: `The models of ${origin}`,
      base_url: origin,
      base_path: "v1/chat/completions",
      models: models.map(({ id, context_window }) => ({ name: id, context_limit: context_window })),
      headers: { Authorization: `Bearer ${key}` },
      requires_auth: false,
      supports_streaming: true,
    };
    const folder = places.platform === "win32" ? join("Block", "goose", "config") : "goose";
    const file = join(configFolder(places), folder, "custom_providers", `${gooseProvider}.json`);
    return [{ kind: "whole", file, text: jsonText(provider) }];
  },
  next: ({ model }) => [`Start it: GOOSE_PROVIDER=${gooseProvider} GOOSE_MODEL='${model.id}' goose session`],
};

export const codingAgents: readonly Client[] = [claudeCode, codex, openCode, qwenCode, aider, goose];
