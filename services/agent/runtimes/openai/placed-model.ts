/** How the cache of Hugging Face lays a repository out. */
const cachedRepository = /(?:^|[/\\])models--([^/\\]+)[/\\]snapshots[/\\][^/\\]+[/\\]?$/;

/**
 * The id that clients use of a model that its server may call by the place where it lies: the name of the folder, or of
 * the file without how it is stored. Places are no business of a client's. Any other name is the id.
 */
export function idByPlace(name: string): string {
  if (!isPlace(name) && !name.endsWith(".gguf")) return name;
  const repository = cachedRepository.exec(name)?.[1];
  if (repository !== undefined) return repository.replace("--", "/");
  const last = name.split(/[/\\]/).findLast((part) => part !== "") ?? name;
  return last.replace(/(-\d{5}-of-\d{5})?\.gguf$/, "") || last;
}

/** Each model of a server by its id. Of two with the same id the one that was listed first is meant. */
export function byPlacedId<Listed extends { readonly id: string }>(listed: readonly Listed[]): Map<string, Listed> {
  const byId = new Map<string, Listed>();
  for (const entry of listed) {
    const id = idByPlace(entry.id);
    if (!byId.has(id)) byId.set(id, entry);
  }
  return byId;
}

function isPlace(name: string): boolean {
  return /^(~|\.{1,2})?[/\\]|^[A-Za-z]:[/\\]/.test(name);
}
