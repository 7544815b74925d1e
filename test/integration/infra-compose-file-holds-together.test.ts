import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { natsSiteFiles } from "#shared/broker/nats-site.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { filledEnvironment, infraFolder, readCompose, type Service } from "../harness/infra/compose-file.ts";

const environment = filledEnvironment();
const compose = readCompose(environment);
const services = Object.entries(compose.services);
const gateways = services.filter(([, { command }]) => command?.[0] === "gateway").map(([name]) => name);

/** The service, by its name. */
function service(name: string): Service {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`compose.yaml has no ${name}`);
  return found;
}

/** All settings that a process reads: it asks for each by its name. */
function settingsRead(read: (environment: Record<string, string>) => unknown): Set<string> {
  const names = new Set<string>();
  read(
    new Proxy<Record<string, string>>(
      {},
      {
        get(_, name) {
          names.add(String(name));
          return undefined;
        },
      },
    ),
  );
  return names;
}

describe("infra/compose.yaml", () => {
  const secrets = Object.keys(environment).filter((name) => /PASSWORD|PEPPER/.test(name));

  test.each(secrets)("infra/compose.yaml does not start without %s, which .env.example leaves open", (name) => {
    expect(readFileSync(join(infraFolder, ".env.example"), "utf8")).toMatch(new RegExp(`^${name}=$`, "m"));
    expect(() => readCompose({ ...environment, [name]: "" })).toThrow(`${name} is not set`);
  });

  test("infra/compose.yaml holds no secret of its own, and listens on loopback unless told otherwise", () => {
    const bare = Object.values(readCompose(Object.fromEntries(secrets.map((name) => [name, "given"]))).services);
    const settings = bare.flatMap((each) => Object.entries(each.environment));
    const urls = settings.map(([, value]) => value).filter((value) => /^\w+:\/\/.*@/.test(value));
    const named = settings.filter(([name]) => /PASSWORD|PEPPER|AUTH/.test(name)).map(([, value]) => value);
    const held = [...urls.map((url) => new URL(url).password), ...named];
    expect(held.length).toBeGreaterThan(4);
    expect([...new Set(held)]).toEqual(["given"]);
    const ports = bare.flatMap((each) => each.ports);
    expect(ports.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
  });

  test("infra/compose.yaml names only files, folders, networks, volumes and services that there are", () => {
    for (const [name, { volumes, networks, depends_on: needs, build }] of services) {
      const mounted = volumes.map((volume) => volume.split(":")[0] ?? "");
      const files = mounted.filter((from) => from.startsWith("./"));
      const made = files.filter((file) => !/^\.\/nats(-tls)?\//.test(file));
      expect([name, made.filter((file) => !existsSync(join(infraFolder, file)))]).toEqual([name, []]);
      expect(Object.keys(compose.volumes)).toEqual(
        expect.arrayContaining(mounted.filter((from) => !files.includes(from))),
      );
      expect(Object.keys(compose.networks)).toEqual(expect.arrayContaining(networks));
      if (build !== undefined) expect(existsSync(join(infraFolder, build.context, build.dockerfile))).toBe(true);
      for (const [needed, { condition }] of Object.entries(needs)) {
        expect(service(needed).networks.some((network) => networks.includes(network))).toBe(true);
        // An image of ours has its check in the Dockerfile.
        const { healthcheck: check, build: ours } = service(needed);
        const healthIsKnown = check === undefined ? ours !== undefined : !("disable" in check);
        if (condition === "service_healthy") expect([needed, healthIsKnown]).toEqual([needed, true]);
      }
    }
  });

  test("infra/compose.yaml gives its processes settings that they know and accept, and time to drain", () => {
    for (const [name, { command, environment: settings, stop_grace_period: graceSeconds = 10 }] of services) {
      if (command?.[0] !== "gateway") {
        expect([name, Object.keys(settings).filter((key) => key.startsWith("TRUNKLINE_"))]).toEqual([name, []]);
        continue;
      }
      const { TRUNKLINE_NATS_SIGNING_KEY_FILE: _, ...others } = settings;
      expect([...settingsRead(gatewayConfig)]).toEqual(expect.arrayContaining(Object.keys(settings)));
      expect(graceSeconds * 1_000).toBeGreaterThan(gatewayConfig(others).drainMs + 5_000);
    }
  });

  test("infra/compose.yaml gives NATS its configuration alone, and gateways the credentials of `trunkline nats init` but the operator's", () => {
    const madeBy = (name: string) =>
      service(name).volumes.flatMap((volume) => (volume.startsWith("./nats/") ? [volume.split(":")] : []));
    expect(madeBy("nats").map(([from]) => from)).toEqual(["./nats/nats.conf"]);
    for (const name of gateways) {
      const { environment: settings } = service(name);
      const files = madeBy(name);
      expect(files.map(([from]) => from)).toEqual(["./nats/gateway.creds", "./nats/machines.seed"]);
      const paths = [settings["TRUNKLINE_NATS_CREDS"], settings["TRUNKLINE_NATS_SIGNING_KEY_FILE"]];
      expect(files.map(([, to]) => to)).toEqual(paths);
    }
    expect(natsSiteFiles).toEqual(expect.arrayContaining(["nats.conf", "gateway.creds", "machines.seed"]));
    const folder = service("nats").environment["NATS_JWT_DIR"] ?? "";
    expect(service("nats").volumes.some((volume) => folder.startsWith(`${volume.split(":")[1]}/`))).toBe(true);
  });

  test("infra/compose.yaml speaks TLS to NATS with the private authority, and never uses the laboratory's override", () => {
    for (const name of gateways) {
      const { environment: settings, volumes } = service(name);
      const urls = Object.entries(settings).filter(([setting]) => /^TRUNKLINE_NATS_.*URL$/.test(setting));
      expect(urls.map(([, url]) => new URL(url).protocol)).toEqual(urls.map(() => "tls:"));
      expect(urls.length).toBeGreaterThan(0);
      const authority = settings["TRUNKLINE_NATS_CA"];
      expect(volumes).toContain(`./nats-tls/ca.pem:${authority}:ro`);
      expect(volumes.join()).not.toContain("key");
    }
    const { environment: settings, volumes } = service("nats");
    for (const file of ["CERT", "KEY"]) {
      const path = settings[`NATS_TLS_${file}`] ?? "";
      expect(volumes).toContain(`./nats-tls/${path.split("/").at(-1)}:${path}:ro`);
    }
    const files = [
      "compose.yaml",
      ".env.example",
      "nats.conf",
      "systemd/trunkline-agent.service",
      "../docs/several-gateways.md",
    ];
    const texts = files.map((file) => readFileSync(join(infraFolder, file), "utf8")).join("\n");
    expect(texts).not.toContain("TRUNKLINE_NATS_INSECURE");
  });

  test("infra/compose.yaml and the documents show no broker on another host in clear text", () => {
    const documents = [
      "../README.md",
      "../docs/several-gateways.md",
      "../docs/settings.md",
      "compose.yaml",
      ".env.example",
    ];
    const texts = documents.map((name) => readFileSync(join(infraFolder, name), "utf8")).join("\n");
    expect(texts.match(/\b(nats|ws):\/\/(?!127\.0\.0\.1)[\w<].*/g) ?? []).toEqual([]);
  });

  test("infra/compose.yaml shows no password in a command line, which every list of processes has", () => {
    const commands = services.flatMap(([, { command }]) => command ?? []).join(" ");
    expect(secrets.filter((name) => commands.includes(environment[name] ?? ""))).toEqual([]);
    const [mounted] = service("redis").configs;
    expect(service("redis").command).toContain(mounted?.target);
    const content = compose.configs[mounted?.source ?? ""]?.content;
    expect(content).toBe(`requirepass ${environment["REDIS_PASSWORD"]}`);
  });

  test("infra/compose.yaml lets only gateways come near Redis, and the proxy near nothing but gateways", () => {
    const on = (network: string) =>
      services.filter(([, { networks }]) => networks.includes(network)).map(([name]) => name);
    expect([on("keys"), on("edge")]).toEqual([
      ["redis", ...gateways],
      [...gateways, "proxy"],
    ]);
    expect(service("redis").ports).toEqual([]);
  });

  test("infra/compose.yaml has two gateways at least, and the proxy knows them all", () => {
    expect(gateways.length).toBeGreaterThanOrEqual(2);
    expect(service("proxy").environment["GATEWAYS"]).toBe(gateways.map((name) => `${name}:8484`).join(" "));
    expect(Object.keys(service("proxy").depends_on)).toEqual(gateways);
  });
});
