import type { Model } from "#shared/model/model.ts";

const habit = ":latest";

/** A model by its id. Who is used to Ollama may write `name:latest` for what is listed as `name`. */
export function findModel(models: readonly Model[], id: string): Model | undefined {
  const exact = withId(models, id);
  return exact !== undefined || !id.endsWith(habit) ? exact : withId(models, id.slice(0, -habit.length));
}

/** The machines among which `findModel` can find one, by those that offer each id. */
export function findOffering(offering: (id: string) => readonly string[], id: string): readonly string[] {
  const exact = offering(id);
  const habitual = id.endsWith(habit) ? offering(id.slice(0, -habit.length)) : [];
  if (habitual.length === 0) return exact;
  return exact.length === 0 ? habitual : [...new Set([...exact, ...habitual])];
}

function withId(models: readonly Model[], id: string): Model | undefined {
  for (const model of models) if (model.id === id) return model;
  return undefined;
}
