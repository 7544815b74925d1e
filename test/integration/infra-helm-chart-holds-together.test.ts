import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { findBinary } from "../harness/find-binary.ts";
import { infraFolder } from "../harness/infra/compose-file.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { testPepper } from "../harness/trunkline-command.ts";

const run = promisify(execFile);
const [helm, kubeconform] = await Promise.all([findBinary("helm"), findBinary("kubeconform")]);
const missing = [helm === undefined && "helm", kubeconform === undefined && "kubeconform"].filter(Boolean);
if (missing.length > 0) console.log(`Skipping the Helm chart: no ${missing.join(" and no ")} on the PATH.`);

const chart = join(infraFolder, "helm");
/** Kinds of Kubernetes with all their fields. */
const kinds = z.object({ definitions: z.record(z.string(), z.looseObject({})) });
const setting = z.object({ name: z.string(), value: z.string() });
const pod = z.object({
  enableServiceLinks: z.boolean(),
  terminationGracePeriodSeconds: z.number(),
  containers: z.tuple([z.object({ env: z.array(setting) })]),
});
const deployment = z.object({ spec: z.object({ template: z.object({ spec: pod }) }) });
const secret = z.object({ stringData: z.record(z.string(), z.string()) });
const values = {
  publicUrl: "https://models.example.org",
  trustedProxies: ["10.0.0.0/8", "192.168.7.1"],
  autoscaling: { openStreams: 200 },
  ingress: { tlsSecret: "models-tls" },
  settings: { TRUNKLINE_WAIT_MS: "5000" },
  secrets: {
    "key-pepper": testPepper,
    "redis-url": "redis://:word@redis.example:6379",
    "nats-url": "tls://nats.example:4222",
    "machines.seed": `SA${"A".repeat(56)}`,
    "gateway.creds": "credentials",
    "nats-ca.pem": "certificate",
  },
};

describe.skipIf(missing.length > 0)("infra/helm", () => {
  const folder = folderOfTests();
  const schemas = join(folder, "schemas");
  beforeAll(async () => {
    await mkdir(schemas);
    const text = await readFile(join(import.meta.dirname, "../harness/infra/kubernetes-1.37.json"), "utf8");
    const { definitions } = kinds.parse(JSON.parse(text));
    for (const name of Object.keys(definitions)) {
      const schema = JSON.stringify({ $ref: `#/definitions/${name}`, definitions });
      await writeFile(join(schemas, `${name.split(".").at(-1)?.toLowerCase()}.json`), schema);
    }
  });

  /** What `helm template` makes of values. The release is called as the Service must not disturb: trunkline. */
  async function rendered(given: object): Promise<string> {
    const file = join(folder, "values.yaml");
    await writeFile(file, JSON.stringify(given));
    await run(String(helm), ["lint", "--strict", chart, "--values", file]);
    const args = ["template", "trunkline", chart, "--kube-version", "1.37.0", "--values", file];
    return (await run(String(helm), args)).stdout;
  }
  const kindIn = (text: string, kind: string): unknown =>
    parseAllDocuments(text)
      .map((each) => each.toJS() as { kind: string })
      .find((each) => each.kind === kind);

  test.each([
    ["secrets of its own", values],
    ["an existing secret", { ...values, secrets: {}, existingSecret: "site" }],
    [
      "no Ingress, metric or certificate",
      { ...values, autoscaling: { openStreams: 0 }, nats: { privateCa: false }, ingress: { enabled: false } },
    ],
  ])("infra/helm has no fault that helm lint or kubeconform finds, with %s", async (_, given) => {
    const manifests = join(folder, "manifests.yaml");
    await writeFile(manifests, await rendered(given));
    const location = join(schemas, "{{.ResourceKind}}.json");
    const args = ["-strict", "-summary", "-output", "json", "-schema-location", location, manifests];
    const { stdout } = await run(String(kubeconform), args);
    expect(JSON.parse(stdout).summary).toMatchObject({ valid: expect.toSatisfy((count) => count >= 6), skipped: 0 });
  });

  test("infra/helm names the value that is missing", async () => {
    await expect(rendered({ ...values, publicUrl: "" })).rejects.toThrow("publicUrl: set the URL of the site");
    await expect(rendered({ ...values, trustedProxies: [] })).rejects.toThrow("trustedProxies: name the network");
    await expect(rendered({ ...values, secrets: {} })).rejects.toThrow("secrets.key-pepper: set it");
    const { "gateway.creds": _, ...secrets } = values.secrets;
    await expect(rendered({ ...values, secrets })).rejects.toThrow("secrets.gateway.creds: set it");
    expect(await rendered({ ...values, secrets, nats: { operatorMode: false } })).not.toContain("NATS_CREDS");
  });

  test("infra/helm gives gateways settings that they read, and no variables of Services", async () => {
    const text = await rendered(values);
    const { spec } = deployment.parse(kindIn(text, "Deployment")).spec.template;
    const [{ env }] = spec.containers;
    for (const [name, content] of Object.entries(secret.parse(kindIn(text, "Secret")).stringData)) {
      await writeFile(join(folder, name), content);
    }
    const settings = env.map(({ name, value }) => [name, value.replace("/etc/trunkline", folder)]);
    const config = gatewayConfig({ ...Object.fromEntries(settings), TRUNKLINE_HOST: "0.0.0.0" });
    expect(config).toMatchObject({ host: "0.0.0.0", onlyProxies: true, waitMs: 5_000, operationsHost: "0.0.0.0" });
    expect(config.redisUrl).toBe(values.secrets["redis-url"]);
    expect(spec.enableServiceLinks).toBe(false);
    const stopMs = config.drainMs + Number(config.graceMs);
    expect(spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(stopMs);
  });

  test("infra/helm scales by a metric that gateways show", async () => {
    expect(kindIn(await rendered(values), "HorizontalPodAutoscaler")).toMatchObject({
      spec: { metrics: [{ resource: { name: "cpu" } }, { pods: { metric: { name: "trunkline_open_streams" } } }] },
    });
    expect(await readFile(join(infraFolder, "metrics.md"), "utf8")).toContain("`trunkline_open_streams`");
  });
});

test("the chart is of the package's version", async () => {
  const read = async (file: string): Promise<string> => readFile(join(infraFolder, file), "utf8");
  const { version } = JSON.parse(await read("../package.json"));
  expect(parse(await read("helm/Chart.yaml"))).toMatchObject({ version, appVersion: version });
});
