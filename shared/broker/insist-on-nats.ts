import { exitCodes, StartFailure } from "../process/start-failure.ts";

/** A gateway or an agent of its own is nothing without the broker that the others are on. */
export function insistOnNats(service: "gateway" | "agent", natsUrl: string | undefined): string {
  if (natsUrl !== undefined) return natsUrl;
  throw new StartFailure(
    exitCodes.config,
    `trunkline ${service} needs TRUNKLINE_NATS_URL, such as nats://127.0.0.1:4222; trunkline up runs everything in one process without it.`,
  );
}
