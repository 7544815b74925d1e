import type { Environment } from "./config.ts";
import { nearestFirst } from "./nearest-names.ts";

const prefix = "TRUNKLINE_";

/**
 * The settings of all processes. One settings file often serves all of them, so each process must know the others'
 * names.
 */
export const settingNames: readonly string[] = `
  ADMIN_KEY ALERT_HOSTS BASE_URL BODY_BYTES_MAX CAPTURE CONNECTIONS_MAX CONNECTIONS_PER_ADDRESS_MAX CONSOLE_URL
  CONTINUE CORS_ORIGINS CURRENCY DRAIN_MS ENGINE_DIR FIRST_TOKEN_MS GGUF GGUF_CONTEXT GRACE_MS HOST IMAGE_HOSTS JOB_TOTAL_MS KEY KEYS_AWAY_MS
  KEY_PEPPER KEY_PEPPER_ALSO LOAD_WAIT_MS LOG_FORMAT LOG_LEVEL MACHINE MANAGE MEDIA_TOKENS MEMBER_DAYS METRICS_TOKEN
  MODELS_FILE MODEL_MEMORY_MB NATS_CA NATS_CERT NATS_CREDS NATS_INSECURE NATS_KEY NATS_SIGNING_KEY NATS_SYSTEM_CREDS
  NATS_SYSTEM_URL NATS_URL NO_PROGRESS_MS OIDC_CLAIM OIDC_CLIENT_ID OIDC_CLIENT_SECRET OIDC_ISSUER OIDC_ROLES
  OPERATIONS_CA OPERATIONS_HOST OPERATIONS_HOSTS OPERATIONS_PORT OPERATIONS_TLS_CERT OPERATIONS_TLS_KEY
  OPERATIONS_URL PORT PROMPT_CACHE PUBLIC_URL QUEUE_MAX REDIS_URL REQUESTS_DAYS REQUESTS_MAX RUNTIME RUNTIME_KEY
  RUNTIME_URL SCRIPTED_MODELS SLOTS STATE_DIR STORE_RESPONSES STORE_RESPONSES_BYTES_MAX
  STORE_RESPONSES_BYTES_PER_KEY_MAX STORE_RESPONSES_DAYS TIME_SCALE TLS_CERT TLS_KEY TRACE_URL TRUSTED_PROXIES WAIT_MS`
  .trim()
  .split(/\s+/)
  .map((name) => prefix + name);

/** Variables that hold the key in coding agents and editors, as `trunkline connect` names them there. */
export const clientVariables: readonly string[] = ["TRUNKLINE_API_KEY", "TRUNKLINE_QWEN_KEY"];

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
      const remedy = near === undefined ? "docs/settings.md lists all settings" : `did you mean ${near}?`;
      return `${name} is not a setting and changes nothing: ${remedy}`;
    });
}

function nearestSetting(name: string): string | undefined {
  const limit = Math.min(misspeltLettersMax, Math.floor((name.length - prefix.length) / 3));
  const [nearest] = nearestFirst(name, settingNames);
  return nearest !== undefined && nearest.distance <= limit ? nearest.name : undefined;
}
