import { expect, test } from "vitest";
import { settingNames } from "#shared/process/setting-names.ts";
import { gatewayConfig } from "../../../services/gateway/config.ts";

const secrets = {
  TRUNKLINE_NATS_URL: "nats://gateway:canary-nats@10.0.0.2:4222",
  TRUNKLINE_REDIS_URL: "redis://:canary-redis@10.0.0.3:6379",
  TRUNKLINE_NATS_SYSTEM_URL: "nats://sys:canary-system@10.0.0.2:4222",
  TRUNKLINE_NATS_SIGNING_KEY: `SA${"CANARY".padEnd(56, "A")}`,
  TRUNKLINE_KEY_PEPPER: "canary-pepper-that-is-long-enough-to-be-one",
  TRUNKLINE_KEY_PEPPER_ALSO: "canary-other-pepper-that-is-long-enough",
  TRUNKLINE_METRICS_TOKEN: "canary-token-of-the-metrics",
  TRUNKLINE_OIDC_CLIENT_SECRET: "canary-secret",
  OTEL_EXPORTER_OTLP_HEADERS: "api-key=canary-collector",
};

test("each setting of a gateway is shown with its value and source, or is marked as a secret and hidden", () => {
  const given = {
    TRUNKLINE_OIDC_ISSUER: "https://ada:canary,canary-password@id.example",
    TRUNKLINE_OIDC_CLIENT_ID: "console",
    TRUNKLINE_OIDC_ROLES: "ops=admin",
    TRUNKLINE_PORT: "9000",
    TRUNKLINE_HOST: "",
  };
  const { shownSettings: shown } = gatewayConfig({ ...secrets, ...given });
  expect(shown.filter(({ secret }) => secret).map(({ name }) => name)).toEqual(
    expect.arrayContaining(Object.keys(secrets)),
  );
  expect(JSON.stringify(shown)).not.toMatch(/canary/i);
  // Files are named, and what they hold stays there.
  const named = /_(?:NATS|TLS)_(?:KEY|CERT|CREDS|CA)$|_SYSTEM_CREDS$/;
  const telling = shown.filter(({ name }) => /SECRET|TOKEN$|PEPPER|KEY|CREDS|PASSWORD/.test(name) && !named.test(name));
  expect(telling.filter(({ secret }) => !secret).map(({ name }) => name)).toEqual([
    "TRUNKLINE_KEYS_AWAY_MS",
    "TRUNKLINE_STORE_RESPONSES_BYTES_PER_KEY_MAX",
  ]);
  const own = shown.map(({ name }) => name).filter((name) => !name.startsWith("OTEL_"));
  expect(settingNames).toEqual(expect.arrayContaining(own));
  expect(shown).toEqual(
    expect.arrayContaining([
      { name: "TRUNKLINE_PORT", value: "9000", source: "environment", secret: false },
      { name: "TRUNKLINE_OIDC_ISSUER", value: "https://id.example", source: "environment", secret: false },
      { name: "TRUNKLINE_CONTINUE", value: "on", source: "default", secret: false },
      { name: "TRUNKLINE_HOST", value: null, source: "default", secret: false },
      { name: "TRUNKLINE_KEY_PEPPER", value: null, source: "environment", secret: true },
    ]),
  );
});
