import { Fault } from "#shared/fault/fault.ts";
import { insistOnSentImage } from "../sent-image.ts";
import type { InputItem } from "./input-items.ts";

/**
 * Returns the path of the request's first image. Every image must be sent inside the request, in a message of a user.
 */
export function checkShownImages(input: string | readonly InputItem[]): string | undefined {
  let first: string | undefined;
  if (typeof input === "string") return first;
  for (const [place, item] of input.entries()) {
    if (!("role" in item) || typeof item.content === "string") continue;
    for (const [at, part] of item.content.entries()) {
      if (part.type !== "input_image") continue;
      const param = `input[${place}].content[${at}]`;
      if (item.role !== "user") throw new Fault("invalid_value", { message: "Only a user can show an image.", param });
      insistOnSentImage(part.image_url, `${param}.image_url`);
      first ??= param;
    }
  }
  return first;
}
