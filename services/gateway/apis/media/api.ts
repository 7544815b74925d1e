import type { Book } from "#shared/records/book.ts";
import type { Endpoint, InferenceDependencies } from "../../requests/endpoint.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { Api } from "../api.ts";
import { describeAudio, describeImages, describeModerations } from "./describe.ts";
import { type MediaPrices, pricedSize, priceOf } from "./media-price.ts";
import { type MediaAnswer, type MediaEndpoint, mediaEndpoints } from "./media-request.ts";
import { ofMedia } from "./render-media.ts";

declare module "../../requests/endpoint.ts" {
  interface InferenceDependencies {
    readonly mediaPrices: MediaPrices;
  }
}

const endpointOf = ([kind, { path, takesForm }]: [string, MediaEndpoint]): Endpoint => ({
  ...ofMedia,
  kind,
  path: path.slice("/v1".length),
  takesForm,
  costOf(
    { form, ceiling }: ReadRequest<MediaAnswer>,
    books: readonly Book[],
    { mediaPrices: prices }: InferenceDependencies,
  ) {
    return form.size && priceOf(form.size, { books, prices, ceiling });
  },
  sizeOf: ({ form }: ReadRequest<MediaAnswer>) => form.size && pricedSize(form.size),
});

/** OpenAI's endpoints for speech, images and moderations. */
export const api: Api = {
  prefix: "/v1",
  descriptions: [describeAudio, describeImages, describeModerations],
  endpoints: Object.entries(mediaEndpoints).map(endpointOf),
};
