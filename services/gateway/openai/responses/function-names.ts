/** A function of a client's own: some stand in a namespace. */
export interface FunctionName {
  readonly name: string;
  readonly namespace?: string | null | undefined;
}

/** Models know of no namespaces, and are told both names in one. */
export function innerName({ name, namespace }: FunctionName): string {
  return !namespace ? name : `${namespace}__${name}`;
}
