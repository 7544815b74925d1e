import { join } from "node:path";
import type { CodingClient } from "./coding-clients.ts";
import type { ScriptedStep } from "./scripted-model.ts";

/** A task in which a client shows a picture to its model. */
export const pictureTask = "Look at the picture and name its colour.";
export const pictureClosing = "The picture is one green dot.";
/** A PNG of one pixel, as base64. */
export const picture =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const pictureTexts = [pictureTask, picture];

/** Answers of the model. Tools that the client loads on demand are asked for first, so that its list of tools changes. */
export function pictureScript({ tools }: CodingClient, project: string): readonly ScriptedStep[] {
  const loading = tools.load === undefined ? [] : [tools.load()];
  return [...loading, tools.look(join(project, "picture.png")), { says: pictureClosing }];
}
