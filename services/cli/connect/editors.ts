import { join } from "node:path";
import type { Model } from "#shared/protocol/model.ts";
import { type Client, jsonText, outputTokens, site, type Setting } from "./client.ts";
import { configFolder, ownFile, type Places } from "../site/places.ts";

const clineProvider = "openai-compatible";

/** Tried with Cline CLI 3.0.65. */
const cline: Client = {
  name: "cline",
  title: "Cline",
  needsTools: true,
  files({ origin, key, model, places }) {
    const provider = {
      settings: {
        provider: clineProvider,
        apiKey: key,
        model: model.id,
        baseUrl: `${origin}/v1`,
        contextWindow: model.context_window,
        maxTokens: outputTokens(model),
      },
      updatedAt: new Date(0).toISOString(),
      tokenSource: "manual",
    };
    const settings: Setting[] = [
      { path: ["providers", clineProvider], value: provider },
      { path: ["lastUsedProvider"], value: clineProvider },
    ];
    return [{ kind: "settings", file: clineFile(places), settings, beginning: { version: 1, modes: {} } }];
  },
  next: ({ places }) => [
    "In a terminal: cline",
    `In an editor that shows no model yet: choose OpenAI Compatible and enter the values of ${clineFile(places)}.`,
  ],
};

function clineFile({ home }: Places): string {
  return join(home, ".cline", "data", "settings", "providers.json");
}

/** Tried with Continue CLI 1.5.47. JSON is YAML too. */
const continueDev: Client = {
  name: "continue",
  title: "Continue",
  files({ origin, key, models, places }) {
    const config = {
      name: site.name,
      version: "1.0.0",
      schema: "v1",
      models: models.map((each) => continueModel(each, { apiBase: `${origin}/v1`, apiKey: key })),
    };
    return [{ kind: "whole", file: continueFile(places), text: jsonText(config) }];
  },
  next: ({ places }) => [
    `In an editor: reload its window, then choose the configuration ${site.name} in Continue.`,
    `In a terminal: cn --config '${continueFile(places)}'`,
  ],
};

function continueFile({ home, environment }: Places): string {
  return join(environment["CONTINUE_GLOBAL_DIR"] || join(home, ".continue"), "agents", `${site.id}.yaml`);
}

function continueModel(model: Model, address: object): object {
  const { tools, vision } = model.capabilities;
  return {
    name: model.id,
    provider: "openai",
    model: model.id,
    ...address,
    roles: ["chat", "edit", "apply"],
    capabilities: [...(tools ? ["tool_use"] : []), ...(vision ? ["image_input"] : [])],
    defaultCompletionOptions: { contextLength: model.context_window, maxTokens: outputTokens(model) },
  };
}

/** Written after Zed's documentation; not run. Zed takes keys from the environment or its settings page alone. */
const zed: Client = {
  name: "zed",
  title: "Zed",
  files({ origin, key, model, models, places }) {
    const provider = { api_url: `${origin}/v1`, available_models: models.map(zedModel) };
    const settings: Setting[] = [
      { path: ["language_models", "openai_compatible", site.name], value: provider },
      { path: ["agent", "default_model"], value: { provider: site.name, model: model.id }, givesWay: true },
    ];
    const { home, platform, environment } = places;
    const { XDG_CONFIG_HOME } = environment;
    const folder =
      platform === "win32"
        ? join(configFolder(places), "Zed")
        : join((platform === "linux" && XDG_CONFIG_HOME) || join(home, ".config"), "zed");
    return [
      { kind: "settings", file: join(folder, "settings.json"), settings },
      { kind: "whole", file: ownFile(places, "zed.env"), text: `TRUNKLINE_API_KEY=${key}\n` },
    ];
  },
  next: ({ places }) => [
    `Enter the key of ${ownFile(places, "zed.env")} in Zed's agent settings, under LLM Providers, ${site.name}.`,
    `Or start Zed with it: env $(cat '${ownFile(places, "zed.env")}') zed`,
  ],
};

function zedModel(model: Model): object {
  const { tools, vision } = model.capabilities;
  return {
    name: model.id,
    display_name: model.id,
    max_tokens: model.context_window,
    max_output_tokens: outputTokens(model),
    capabilities: { tools, images: vision, parallel_tool_calls: tools, prompt_cache_key: false },
  };
}

/** Written after VS Code's documentation; not run. */
const vsCode: Client = {
  name: "vscode",
  title: "VS Code",
  files({ origin, key, models, places }) {
    const element = { name: site.name, vendor: "customendpoint" };
    const url = `${origin}/v1/chat/completions`;
    const value = {
      ...element,
      apiKey: key,
      apiType: "chat-completions",
      models: models.map((each) => vsCodeModel(each, url)),
    };
    const isMac = places.platform === "darwin";
    const folder = isMac ? join(places.home, "Library", "Application Support") : configFolder(places);
    const file = join(folder, "Code", "User", "chatLanguageModels.json");
    return [{ kind: "settings", file, settings: [{ path: [], element, value }] }];
  },
  next: () => [`Needs VS Code 1.122 or newer. Reload its window, then choose a model of ${site.name} in the chat.`],
};

function vsCodeModel(model: Model, url: string): object {
  return {
    id: model.id,
    name: model.id,
    url,
    toolCalling: model.capabilities.tools,
    vision: model.capabilities.vision,
    maxInputTokens: model.context_window - outputTokens(model),
    maxOutputTokens: outputTokens(model),
  };
}

/** AI Assistant takes its providers from its settings page alone, so the file is for a person to copy from. */
const jetBrains: Client = {
  name: "jetbrains",
  title: "JetBrains AI Assistant",
  files({ origin, key, model, places }) {
    const text = `Provider:       OpenAI-compatible
URL:            ${origin}/v1
API key:        ${key}
Model:          ${model.id}
Context window: ${model.context_window}
Tool calling:   ${model.capabilities.tools ? "on" : "off"}
`;
    return [{ kind: "whole", file: ownFile(places, "jetbrains.txt"), text }];
  },
  next: ({ places }) => [
    `Enter what ${ownFile(places, "jetbrains.txt")} says in the settings: Tools, AI Assistant, Providers & API keys.`,
  ],
};

export const editors: readonly Client[] = [cline, continueDev, zed, vsCode, jetBrains];
