import type { Broker } from "./broker.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";

/** Throws when the broker denies this process a publish or a subscription that it made before the latest flush. */
export function insistOnGrants({ trouble }: Pick<Broker, "trouble">): void {
  if (trouble === undefined) return;
  throw new StartFailure(
    exitCodes.config,
    `${trouble}: give its user that grant (infra/nats.conf shows all), or set TRUNKLINE_NATS_URL or TRUNKLINE_NATS_CREDS to the credential that was made for this process.`,
  );
}

/** Returns the NATS URL, or throws: a gateway in its own process needs the broker that the others use. */
export function insistOnNats(natsUrl: string | undefined): string {
  if (natsUrl !== undefined) return natsUrl;
  throw new StartFailure(
    exitCodes.config,
    `trunkline gateway needs TRUNKLINE_NATS_URL, such as nats://127.0.0.1:4222; trunkline up runs everything in one process without it.`,
  );
}
