import { Fault } from "#shared/fault/fault.ts";

const dataUrl = /^data:image\/[a-z0-9.+-]+;base64,/i;

/**
 * Refuses an image that is not a data URL. Machines do not fetch URLs: a URL could point into somebody's private
 * network.
 */
export function insistOnSentImage(url: string, param: string): void {
  if (dataUrl.test(url.slice(0, 100))) return;
  throw new Fault("invalid_value", {
    message: "An image must be sent as a data URL, 'data:image/png;base64,…'; images are not fetched from elsewhere.",
    param,
  });
}
