interface Branch<Kept> {
  readonly branches: Map<string, Branch<Kept>>;
  kept: Kept | undefined;
}

/**
 * Holds one value for each combination of label values, in a tree with one level for each label. One joined name of all
 * labels would have to be made for every request. The caller bounds the number of combinations.
 */
export class ByLabels<Kept> {
  readonly #root = newBranch<Kept>();
  readonly #make: () => Kept;
  readonly #all: { readonly values: readonly string[]; readonly kept: Kept }[] = [];

  constructor(make: () => Kept) {
    this.#make = make;
  }

  /** All entries, in the order in which `of` made them. */
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

/** Returns label values by the names of their labels; both are in the same order. */
export function labelled(labels: readonly string[], values: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(labels.map((label, at) => [label, values[at] ?? ""]));
}
