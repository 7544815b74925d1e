import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";

export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** The certificate to speak HTTPS with, or nothing when none is named; what is named and does not work is told. */
export function readCertificate(files: {
  readonly tlsCertificateFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
}): Certificate | undefined {
  const { tlsCertificateFile: certFile, tlsKeyFile: keyFile } = files;
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    throw new StartFailure(exitCodes.config, "Set TRUNKLINE_TLS_CERT and TRUNKLINE_TLS_KEY both, or neither.");
  }
  const certificate = { cert: readPem("TRUNKLINE_TLS_CERT", certFile), key: readPem("TRUNKLINE_TLS_KEY", keyFile) };
  try {
    createSecureContext(certificate);
  } catch (error) {
    throw new StartFailure(
      exitCodes.config,
      `TRUNKLINE_TLS_CERT and TRUNKLINE_TLS_KEY: ${certFile} and ${keyFile} are not a certificate and its key in PEM form.`,
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
