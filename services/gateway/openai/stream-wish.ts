import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";

/** The request fields about streaming as OpenAI's clients write them. */
export const streamFields = {
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
};

export interface StreamWish {
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

export function streamWish(request: {
  readonly stream?: boolean | null | undefined;
  readonly stream_options?: { readonly include_usage?: boolean | null | undefined } | null | undefined;
}): StreamWish {
  const { stream, stream_options: options } = request;
  if (options && stream !== true) {
    throw new Fault("invalid_value", {
      message: "'stream_options' is only allowed when 'stream' is true.",
      param: "stream_options",
    });
  }
  return { stream: stream ?? false, includeUsage: options?.include_usage ?? false };
}
