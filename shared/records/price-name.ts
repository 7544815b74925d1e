import { z } from "zod";
import { modelIdCharactersMax } from "../protocol/model.ts";

/** Ends the name of a price that holds at external machines alone. A model's name has no space. */
export const externalEnd = " external";

/** The name of a price: a model, or a pattern of models as in a scope, for all machines or for external ones. */
export const priceName = z
  .string()
  .max(modelIdCharactersMax + externalEnd.length, `must have at most ${modelIdCharactersMax} characters`)
  .regex(
    /^[^\p{C}\p{Z}]+(?: external)?$/u,
    "must be a model or a pattern with *, printable and without spaces; ' external' may follow",
  );
