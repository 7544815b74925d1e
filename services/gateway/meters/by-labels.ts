interface Branch<Kept> {
  readonly branches: Map<string, Branch<Kept>>;
  kept: Kept | undefined;
}

/**
 * Something for each combination of the values of some labels, found from value to value, since a name for all of them
 * together would be made for every request. Whoever asks sees to it that there are not too many.
 */
export class ByLabels<Kept> {
  readonly #root = newBranch<Kept>();
  readonly #make: () => Kept;
  readonly #all: { readonly values: readonly string[]; readonly kept: Kept }[] = [];

  constructor(make: () => Kept) {
    this.#make = make;
  }

  /** All that was asked for, in that order. */
  get all(): readonly { readonly values: readonly string[]; readonly kept: Kept }[] {
    return this.#all;
  }

  of(values: readonly string[]): Kept {
    let branch = this.#root;
    for (let at = 0; at < values.length; at += 1) branch = branchOf(branch, values[at] ?? "");
    if (branch.kept === undefined) {
      branch.kept = this.#make();
      this.#all.push({ values, kept: branch.kept });
    }
    return branch.kept;
  }
}

function branchOf<Kept>({ branches }: Branch<Kept>, value: string): Branch<Kept> {
  const known = branches.get(value);
  if (known !== undefined) return known;
  const branch = newBranch<Kept>();
  branches.set(value, branch);
  return branch;
}

function newBranch<Kept>(): Branch<Kept> {
  return { branches: new Map(), kept: undefined };
}

/** The values of some labels, in the order of the labels, by their names. */
export function labelled(labels: readonly string[], values: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(labels.map((label, at) => [label, values[at] ?? ""]));
}
