import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";

export const infraFolder = join(import.meta.dirname, "../../../infra");

const seconds = z
  .string()
  .regex(/^\d+(ms|s)$/)
  .transform((text) => Number.parseInt(text, 10) / (text.endsWith("ms") ? 1_000 : 1));

const healthcheck = z.union([
  z.strictObject({ disable: z.literal(true) }),
  z.strictObject({
    test: z.tuple([z.enum(["CMD", "CMD-SHELL"])], z.string()),
    interval: seconds,
    timeout: seconds,
    start_period: seconds,
    start_interval: seconds,
  }),
]);

/** A file of the host that must be there: Docker would make a folder of it otherwise. */
const boundFile = z
  .strictObject({
    type: z.literal("bind"),
    source: z.string().startsWith("./"),
    target: z.string().startsWith("/"),
    read_only: z.literal(true),
    bind: z.strictObject({ create_host_path: z.literal(false) }),
  })
  .transform(({ source, target }) => `${source}:${target}:ro`);

const service = z.strictObject({
  /** Pinned to an exact version, and by its digest where that is known. */
  image: z.string().regex(/^[\w/.-]+:\d+\.\d+\.\d+(-alpine)?(@sha256:[0-9a-f]{64})?$/),
  build: z.strictObject({ context: z.string(), dockerfile: z.string() }).optional(),
  command: z.array(z.string()).optional(),
  /** A number, since an image need not have a user of that name. */
  user: z.string().regex(/^\d+$/).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.union([z.string().regex(/^(\.\/[^:]+:\/[^:]+:ro|[\w-]+:\/[^:]+)$/), boundFile])).default([]),
  configs: z.array(z.strictObject({ source: z.string(), target: z.string() })).default([]),
  ports: z.array(z.string()).default([]),
  networks: z.array(z.string()).min(1),
  restart: z.literal("unless-stopped"),
  stop_grace_period: seconds.optional(),
  healthcheck: healthcheck.optional(),
  depends_on: z
    .record(z.string(), z.strictObject({ condition: z.enum(["service_healthy", "service_started"]) }))
    .default({}),
  init: z.literal(true).optional(),
  read_only: z.literal(true).optional(),
  tmpfs: z.array(z.string()).optional(),
  cap_drop: z.tuple([z.literal("ALL")]).optional(),
  security_opt: z.array(z.string()).optional(),
});
export type Service = z.infer<typeof service>;

const composeFile = z.strictObject({
  name: z.literal("trunkline"),
  "x-trunkline": z.unknown(),
  "x-file": z.unknown(),
  services: z.record(z.string(), service),
  networks: z.record(z.string(), z.strictObject({ internal: z.literal(true).optional() })),
  configs: z.record(z.string(), z.strictObject({ content: z.string() })),
  volumes: z.record(z.string(), z.strictObject({})),
});
export type ComposeFile = z.infer<typeof composeFile>;

/** compose.yaml with what Compose would put for its variables; without a value for one that it insists on it throws. */
export function readCompose(variables: Readonly<Record<string, string>>): ComposeFile {
  const text = readFileSync(join(infraFolder, "compose.yaml"), "utf8");
  const filled = text.replace(interpolation, (...match) => valueOf(match, variables));
  return composeFile.parse(parse(filled, { merge: true }));
}

/** `${NAME:?why it must be set}` or `${NAME:-what stands for it}`; other forms are not used. */
const interpolation = /\$\{(\w+):([?-])([^}]*)\}/g;

function valueOf([whole, name, kind, text]: readonly unknown[], variables: Readonly<Record<string, string>>): string {
  const given = variables[String(name)];
  if (given !== undefined && given !== "") return given;
  if (kind === "-") return String(text);
  throw new Error(`${String(whole)}: ${String(name)} is not set`);
}

/** `.env.example` as its reader is told to fill it in: a secret of letters behind every name that has nothing there. */
export function filledEnvironment(): Readonly<Record<string, string>> {
  const lines = readFileSync(join(infraFolder, ".env.example"), "utf8").matchAll(/^(\w+)=(.*)$/gm);
  return Object.fromEntries([...lines].map(([, name = "", value = ""]) => [name, value === "" ? secret() : value]));
}

/** A password for each user of `infra/nats.conf`. */
export function natsPasswords(): Readonly<Record<string, string>> {
  const variables = readFileSync(join(infraFolder, "nats.conf"), "utf8").matchAll(/\$(NATS_PASSWORD_\w+)/g);
  return Object.fromEntries([...variables].map(([, name = ""]) => [name, secret()]));
}

function secret(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(60)), (byte) => String.fromCharCode(97 + (byte % 26))).join(
    "",
  );
}
