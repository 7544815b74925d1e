import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";

export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * Reads the certificate for HTTPS and its key; returns undefined when neither is configured. Throws a `StartFailure`
 * for files that do not work. The settings are `prefix` with `CERT` and with `KEY`.
 */
export function readCertificate(
  prefix: "TRUNKLINE_TLS_" | "TRUNKLINE_OPERATIONS_TLS_",
  files: { readonly tlsCertificateFile: string | undefined; readonly tlsKeyFile: string | undefined },
): Certificate | undefined {
  const { tlsCertificateFile: certFile, tlsKeyFile: keyFile } = files;
  if (certFile === undefined && keyFile === undefined) return undefined;
  const [certVariable, keyVariable] = [`${prefix}CERT`, `${prefix}KEY`];
  if (certFile === undefined || keyFile === undefined) {
    throw new StartFailure(exitCodes.config, `Set ${certVariable} and ${keyVariable} both, or neither.`);
  }
  const certificate = { cert: readPem(certVariable, certFile), key: readPem(keyVariable, keyFile) };
  try {
    createSecureContext(certificate);
  } catch (error) {
    throw new StartFailure(
      exitCodes.config,
      `${certVariable} and ${keyVariable}: ${certFile} and ${keyFile} are not a certificate and its key in PEM form.`,
      { cause: error },
    );
  }
  return certificate;
}

function readPem(variable: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new StartFailure(
      exitCodes.config,
      `${variable}: the file ${file} cannot be read; name one that this user may read.`,
      {
        cause: error,
      },
    );
  }
}
