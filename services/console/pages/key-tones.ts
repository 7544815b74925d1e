import type { ShownKey } from "#shared/records/shown-key.ts";
import type { Tone } from "../parts.tsx";

export const keyTones: Readonly<Record<ShownKey["state"], Tone>> = {
  valid: "good",
  disabled: "warn",
  expired: "plain",
  revoked: "bad",
};
