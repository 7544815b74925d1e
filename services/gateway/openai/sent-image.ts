import { Fault } from "#shared/fault/fault.ts";

const dataUrl = /^data:image\/[a-z0-9.+-]+;base64,/i;

/** Machines do not fetch what a request points at: an address inside somebody's network is no picture. */
export function insistOnSentImage(url: string, param: string): void {
  if (dataUrl.test(url.slice(0, 100))) return;
  throw new Fault("invalid_value", {
    message: "An image must be sent as a data URL, 'data:image/png;base64,…'; images are not fetched from elsewhere.",
    param,
  });
}
