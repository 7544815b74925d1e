import { taggedName } from "#shared/protocol/model.ts";
import { ownFile, type Places } from "../site/places.ts";
import { type Client, type FileChange, type SiteFacts } from "./client.ts";

/** Returns a file of variables for the environment of a program. `docker run` takes values as they stand, without quotes. */
function variablesFile(file: string, variables: Readonly<Record<string, string>>): FileChange {
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  return { kind: "whole", file, text: lines.join("") };
}

/** Returns a file for a person to copy from, since the app takes its connections from its own pages alone. */
function copiedFile(file: string, values: Readonly<Record<string, string>>): FileChange {
  const width = Math.max(...Object.keys(values).map(({ length }) => length));
  const lines = Object.entries(values).map(([name, value]) => `${`${name}:`.padEnd(width + 2)}${value}\n`);
  return { kind: "whole", file, text: lines.join("") };
}

/** Returns Open WebUI with its connection as variables of its environment. */
function openWebUi(
  about: Pick<Client, "name" | "title">,
  variables: (facts: SiteFacts) => Record<string, string>,
): Client {
  const file = (places: Places): string => ownFile(places, `${about.name}.env`);
  return {
    ...about,
    files: (facts) => [variablesFile(file(facts.places), variables(facts))],
    next: ({ places }) => [
      `Start it with these variables: docker run --env-file '${file(places)}' …, or set them for open-webui serve.`,
      "One that has run before keeps its own: enter URL and key in the admin settings, under Connections.",
    ],
  };
}

/** Tried with Open WebUI 0.12.4. With this connection and the next one it would list each model twice. */
const openWebUiByOpenAi = openWebUi({ name: "open-webui", title: "Open WebUI" }, ({ origin, key, model }) => ({
  OPENAI_API_BASE_URL: `${origin}/v1`,
  OPENAI_API_KEY: key,
  DEFAULT_MODELS: model.id,
}));

/** Tried with Open WebUI 0.12.4, which finds no model whose name lacks a tag. */
const openWebUiByOllama = openWebUi(
  { name: "open-webui-ollama", title: "Open WebUI by its Ollama connection" },
  ({ origin, key, model }) => ({
    OLLAMA_BASE_URL: origin,
    OLLAMA_API_CONFIGS: JSON.stringify({ 0: { enable: true, key } }),
    DEFAULT_MODELS: taggedName(model.id),
  }),
);

/** Read in the sources of Home Assistant 2026.11.0, and its calls tried; the program was not run. */
const homeAssistant: Client = {
  name: "home-assistant",
  title: "Home Assistant",
  files: ({ origin, key, model, places }) => [
    copiedFile(ownFile(places, "home-assistant.txt"), { URL: origin, "API key": key, Model: taggedName(model.id) }),
  ],
  next: ({ places }) => [
    `Enter what ${ownFile(places, "home-assistant.txt")} says in Settings, Devices & services, Add integration, Ollama.`,
    "Choose a model that is marked as downloaded there: a key pulls no others.",
  ],
};

/** Written after its documentation; not run. A page of Obsidian asks other sites as the origin `app://obsidian.md`. */
const obsidianCopilot: Client = {
  name: "obsidian-copilot",
  title: "Copilot for Obsidian",
  files: ({ origin, key, model, places }) => [
    copiedFile(ownFile(places, "obsidian-copilot.txt"), {
      Provider: "OpenAI format, 3rd party",
      "Base URL": `${origin}/v1`,
      "API key": key,
      Model: model.id,
    }),
  ],
  next: ({ places }) => [
    `Enter what ${ownFile(places, "obsidian-copilot.txt")} says in Settings, Copilot: under BYOK, or Model before version 4.`,
    "Turn on CORS in that form. Answers are streamed without it where TRUNKLINE_CORS_ORIGINS of the site has app://obsidian.md.",
  ],
};

/** The address of the proxy. It leaves 11434 to an Ollama on the same host. */
const proxyAddress = "127.0.0.1:11435";

function proxyFiles(places: Places) {
  return { rules: ownFile(places, "ollama.Caddyfile"), key: ownFile(places, "ollama.env") };
}

/**
 * Tried with the command of Ollama 0.17.4, which sends no key, and Caddy 2.6.2, which adds it. Caddy keeps a copy of its
 * rules, so the key is in a file of its own.
 */
const ollamaCommand: Client = {
  name: "ollama",
  title: "Ollama's command",
  files({ origin, key, places }) {
    const text = `{
	admin off
}
http://${proxyAddress} {
	bind 127.0.0.1
	reverse_proxy ${origin} {
		header_up Host ${new URL(origin).host}
		header_up Authorization "Bearer {env.TRUNKLINE_KEY}"
	}
}
`;
    const { rules, key: keyFile } = proxyFiles(places);
    return [{ kind: "whole", file: rules, text }, variablesFile(keyFile, { TRUNKLINE_KEY: key })];
  },
  next: ({ model, origin, places }) => [
    `Start the proxy that adds the key: caddy run --adapter caddyfile --config '${proxyFiles(places).rules}' --envfile '${proxyFiles(places).key}'`,
    `Then: OLLAMA_HOST=${proxyAddress} ollama run '${model.id}'`,
    "Everybody on this host can use the key by that address while the proxy runs.",
    `Ollama's package for Python needs no proxy: OLLAMA_HOST=${origin}, and the key in OLLAMA_API_KEY.`,
  ],
};

export const chatApps: readonly Client[] = [
  openWebUiByOpenAi,
  openWebUiByOllama,
  homeAssistant,
  obsidianCopilot,
  ollamaCommand,
];
