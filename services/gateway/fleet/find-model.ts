import type { Model } from "#shared/model/model.ts";

const habit = ":latest";

/** A model by its id. Who is used to Ollama may write `name:latest` for what is listed as `name`. */
export function findModel(models: readonly Model[], id: string): Model | undefined {
  const exact = withId(models, id);
  return exact !== undefined || !id.endsWith(habit) ? exact : withId(models, id.slice(0, -habit.length));
}

function withId(models: readonly Model[], id: string): Model | undefined {
  for (const model of models) if (model.id === id) return model;
  return undefined;
}
