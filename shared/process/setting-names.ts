import type { Environment } from "./config.ts";
import { nearestFirst } from "./nearest-names.ts";

/**
 * The settings of all processes. One settings file often serves all of them, so each process must know the others'
 * names.
 */
export const settingNames: readonly string[] = [
  "TRUNKLINE_ADMIN_KEY",
  "TRUNKLINE_BASE_URL",
  "TRUNKLINE_BODY_BYTES_MAX",
  "TRUNKLINE_CONNECTIONS_MAX",
  "TRUNKLINE_CONNECTIONS_PER_ADDRESS_MAX",
  "TRUNKLINE_CONSOLE_URL",
  "TRUNKLINE_CONTINUE",
  "TRUNKLINE_CORS_ORIGINS",
  "TRUNKLINE_DRAIN_MS",
  "TRUNKLINE_ENGINE_DIR",
  "TRUNKLINE_FIRST_TOKEN_MS",
  "TRUNKLINE_GGUF",
  "TRUNKLINE_GGUF_CONTEXT",
  "TRUNKLINE_GRACE_MS",
  "TRUNKLINE_HOST",
  "TRUNKLINE_IMAGE_HOSTS",
  "TRUNKLINE_JOB_TOTAL_MS",
  "TRUNKLINE_KEY",
  "TRUNKLINE_KEYS_AWAY_MS",
  "TRUNKLINE_KEY_PEPPER",
  "TRUNKLINE_KEY_PEPPER_ALSO",
  "TRUNKLINE_LOAD_WAIT_MS",
  "TRUNKLINE_LOG_FORMAT",
  "TRUNKLINE_LOG_LEVEL",
  "TRUNKLINE_MACHINE",
  "TRUNKLINE_MANAGE",
  "TRUNKLINE_MEDIA_TOKENS",
  "TRUNKLINE_METRICS_TOKEN",
  "TRUNKLINE_MODELS_FILE",
  "TRUNKLINE_MODEL_MEMORY_MB",
  "TRUNKLINE_NATS_CA",
  "TRUNKLINE_NATS_CERT",
  "TRUNKLINE_NATS_CREDS",
  "TRUNKLINE_NATS_INSECURE",
  "TRUNKLINE_NATS_KEY",
  "TRUNKLINE_NATS_SIGNING_KEY",
  "TRUNKLINE_NATS_SYSTEM_CREDS",
  "TRUNKLINE_NATS_SYSTEM_URL",
  "TRUNKLINE_NATS_URL",
  "TRUNKLINE_NO_PROGRESS_MS",
  "TRUNKLINE_OIDC_CLAIM",
  "TRUNKLINE_OIDC_CLIENT_ID",
  "TRUNKLINE_OIDC_CLIENT_SECRET",
  "TRUNKLINE_OIDC_ISSUER",
  "TRUNKLINE_OIDC_ROLES",
  "TRUNKLINE_OPERATIONS_CA",
  "TRUNKLINE_OPERATIONS_HOST",
  "TRUNKLINE_OPERATIONS_HOSTS",
  "TRUNKLINE_OPERATIONS_PORT",
  "TRUNKLINE_OPERATIONS_TLS_CERT",
  "TRUNKLINE_OPERATIONS_TLS_KEY",
  "TRUNKLINE_OPERATIONS_URL",
  "TRUNKLINE_PORT",
  "TRUNKLINE_PROMPT_CACHE",
  "TRUNKLINE_PUBLIC_URL",
  "TRUNKLINE_QUEUE_MAX",
  "TRUNKLINE_REDIS_URL",
  "TRUNKLINE_REQUESTS_DAYS",
  "TRUNKLINE_REQUESTS_MAX",
  "TRUNKLINE_RUNTIME",
  "TRUNKLINE_RUNTIME_KEY",
  "TRUNKLINE_RUNTIME_URL",
  "TRUNKLINE_SCRIPTED_MODELS",
  "TRUNKLINE_SLOTS",
  "TRUNKLINE_STATE_DIR",
  "TRUNKLINE_STORE_RESPONSES",
  "TRUNKLINE_STORE_RESPONSES_BYTES_MAX",
  "TRUNKLINE_STORE_RESPONSES_BYTES_PER_KEY_MAX",
  "TRUNKLINE_STORE_RESPONSES_DAYS",
  "TRUNKLINE_TIME_SCALE",
  "TRUNKLINE_TLS_CERT",
  "TRUNKLINE_TLS_KEY",
  "TRUNKLINE_TRUSTED_PROXIES",
  "TRUNKLINE_WAIT_MS",
];

/** Variables that hold the key in coding agents and editors, as `trunkline connect` names them there. */
export const clientVariables: readonly string[] = ["TRUNKLINE_API_KEY", "TRUNKLINE_QWEN_KEY"];

const prefix = "TRUNKLINE_";
/** Matches variables of the test harness. */
const otherNames = /^TRUNKLINE_TEST_\w+$/;
/** A secret setting may come from a file, which a variable with this suffix names. */
const fileEnding = /_FILE$/;
/** Bounds the edit distance of a misspelled name, which must also stay within a third of the name's own letters. */
const misspeltLettersMax = 4;

/** Returns a warning for each unknown `TRUNKLINE_` variable, with the nearest setting where one is close. */
export function unknownSettings(environment: Environment): readonly string[] {
  const known = new Set([...settingNames, ...clientVariables]);
  const isKnown = (name: string): boolean =>
    otherNames.test(name) || known.has(name) || known.has(name.replace(fileEnding, ""));
  return Object.keys(environment)
    .filter((name) => name.startsWith(prefix) && environment[name] && !isKnown(name))
    .toSorted()
    .map((name) => {
      const near = nearestSetting(name);
      const remedy = near === undefined ? "infra/settings.md lists all settings" : `did you mean ${near}?`;
      return `${name} is not a setting and changes nothing: ${remedy}`;
    });
}

function nearestSetting(name: string): string | undefined {
  const limit = Math.min(misspeltLettersMax, Math.floor((name.length - prefix.length) / 3));
  const [nearest] = nearestFirst(name, settingNames);
  return nearest !== undefined && nearest.distance <= limit ? nearest.name : undefined;
}
