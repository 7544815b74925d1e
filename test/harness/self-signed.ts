import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { infraFolder } from "./infra/compose-file.ts";

/** Names of PEM files, as the settings of a gateway have them. */
export type CertificateSettings = { readonly TRUNKLINE_TLS_CERT: string; readonly TRUNKLINE_TLS_KEY: string };

/** Makes a certificate that only itself signed, for these names. Its files last until this process ends. */
export async function makeSelfSigned(names = "IP:127.0.0.1,DNS:localhost"): Promise<CertificateSettings> {
  const folder = mkdtempSync(join(tmpdir(), "trunkline-tls-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const files = { TRUNKLINE_TLS_CERT: join(folder, "cert.pem"), TRUNKLINE_TLS_KEY: join(folder, "key.pem") };
  const subject = ["-subj", "/CN=localhost", "-addext", `subjectAltName=${names}`];
  const made = ["-keyout", files.TRUNKLINE_TLS_KEY, "-out", files.TRUNKLINE_TLS_CERT];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await promisify(execFile)("openssl", ["req", "-x509", ...curve, "-days", "2", ...subject, ...made]);
  return files;
}

export interface NatsCertificates {
  readonly caFile: string;
  readonly certificateFile: string;
  readonly keyFile: string;
  /** As `infra/nats.conf` has it, for `extraConfig`, and the files that it names. */
  readonly config: string;
  readonly files: readonly string[];
}

/** Certificates of `infra/nats-ca.sh` for these names. Each call has an authority of its own, until this process ends. */
export async function makeNatsCertificates(...names: readonly string[]): Promise<NatsCertificates> {
  const folder = mkdtempSync(join(tmpdir(), "trunkline-nats-tls-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const env = { ...process.env, NATS_TLS_DIR: folder };
  await promisify(execFile)(join(infraFolder, "nats-ca.sh"), names, { env });
  const [caFile, certificateFile, keyFile] = [
    join(folder, "ca.pem"),
    join(folder, "server.pem"),
    join(folder, "server.key"),
  ];
  const config = `tls { cert_file: "${certificateFile}", key_file: "${keyFile}" }`;
  return { caFile, certificateFile, keyFile, config, files: [certificateFile, keyFile] };
}
