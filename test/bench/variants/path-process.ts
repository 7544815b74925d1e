import type { PathProcess } from "./variant.ts";

/** A process whose CPU time counts; one in a container has no id that could be read here. */
export function pathProcess(name: string, { processId }: { readonly processId: number | undefined }): PathProcess {
  if (processId === undefined) throw new Error(`the process of ${name} cannot be seen from here`);
  return { name, pid: processId };
}

/** The first of its kind bears the name alone. */
export function numbered(name: string, place: number): string {
  return place === 0 ? name : `${name} ${place + 1}`;
}
