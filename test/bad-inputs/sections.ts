import { forms } from "./forms.ts";
import { framing } from "./framing.ts";
import { headers } from "./headers.ts";
import { json } from "./json.ts";
import { keys } from "./keys.ts";
import { meaning } from "./meaning.ts";
import { messages } from "./messages.ts";
import { ollama } from "./ollama.ts";
import { pairing } from "./pairing.ts";
import type { Section } from "./row.ts";
import { stored } from "./stored.ts";
import { volume } from "./volume.ts";

/** The cases of bad inputs, section by section. `test/architecture/promises.txt` names the tests of all other rows. */
export const sections: readonly Section[] = [
  framing,
  headers,
  keys,
  json,
  meaning,
  volume,
  pairing,
  messages,
  ollama,
  stored,
  forms,
];
