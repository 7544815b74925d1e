/** The name of a client's function. Some functions are in a namespace. */
export interface FunctionName {
  readonly name: string;
  readonly namespace?: string | null | undefined;
}

/** Joins the namespace and the name. Models do not support namespaces. */
export function innerName({ name, namespace }: FunctionName): string {
  return !namespace ? name : `${namespace}__${name}`;
}
