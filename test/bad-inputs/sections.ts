import { forms } from "./forms.ts";
import { framing } from "./framing.ts";
import { headers } from "./headers.ts";
import { hostileAgents } from "./hostile-agents.ts";
import { json } from "./json.ts";
import { keys } from "./keys.ts";
import { meaning } from "./meaning.ts";
import { messages } from "./messages.ts";
import { ollama } from "./ollama.ts";
import { pairing } from "./pairing.ts";
import type { Section } from "./row.ts";
import { stored } from "./stored.ts";
import { leaving, trust } from "./trust.ts";
import { volume } from "./volume.ts";

/** The whole list of bad inputs, section by section. */
export const sections: readonly Section[] = [
  framing,
  headers,
  keys,
  json,
  meaning,
  volume,
  hostileAgents,
  trust,
  pairing,
  messages,
  ollama,
  stored,
  forms,
  leaving,
];
