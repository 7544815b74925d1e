import { parser } from "@prometheus-io/lezer-promql";

/** A metric as expressions may ask for it. */
export interface AskableMetric {
  readonly labels: readonly string[];
  /** True for counters, and for gauges that count since an agent's start. */
  readonly grows: boolean;
}

type Node = ReturnType<typeof parser.parse>["topNode"];

/** Labels that Prometheus adds to all metrics of a target. */
const addedLabels = ["instance", "job"];

/**
 * Checks a PromQL expression by Prometheus' own grammar and against metrics. Returns its faults, and the labels of its
 * result, which legends and texts of alerts may show.
 */
export function checkPromQl(expression: string, metrics: ReadonlyMap<string, AskableMetric>) {
  const faults: string[] = [];
  const text = ({ from, to }: Node): string => expression.slice(from, to);
  const childrenOf = (node: Node): Node[] => {
    const children: Node[] = [];
    for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child);
    return children;
  };
  const all = (node: Node, name: string): Node[] =>
    childrenOf(node).flatMap((child) => (child.name === name ? [child] : all(child, name)));

  /** The labels of a node's vector, or undefined for a number. */
  function labelsOf(node: Node): ReadonlySet<string> | undefined {
    if (node.name === "VectorSelector") return labelsOfSelector(node);
    const [first, ...others] = childrenOf(node)
      .map(labelsOf)
      .filter((labels) => labels !== undefined);
    if (node.name === "AggregateExpr") return labelsOfAggregate(node, first ?? new Set());
    const [second] = others;
    if (first !== undefined && second !== undefined) return labelsOfBoth(node, first, second);
    if (node.name !== "FunctionCall") return first;
    const called = text(all(node, "FunctionIdentifier")[0] ?? node);
    if (called === "vector") return new Set();
    if (["rate", "irate", "increase"].includes(called)) {
      for (const name of all(node, "Identifier").map(text))
        if (metrics.get(name)?.grows === false) faults.push(`${called} of the gauge ${name}`);
    }
    if (called !== "histogram_quantile") return first;
    if (first?.has("le") !== true) faults.push("histogram_quantile without the label le");
    return new Set([...(first ?? [])].filter((label) => label !== "le"));
  }

  function labelsOfSelector(node: Node): ReadonlySet<string> {
    const name = all(node, "Identifier").map(text)[0] ?? "";
    const metric = metrics.get(name);
    if (metric === undefined) faults.push(`there is no metric ${name}`);
    const labels = new Set([...(metric?.labels ?? []), ...addedLabels]);
    for (const label of all(node, "LabelName").map(text))
      if (!labels.has(label)) faults.push(`${name} has no label ${label}`);
    return labels;
  }

  function labelsOfAggregate(node: Node, inner: ReadonlySet<string>): ReadonlySet<string> {
    const modifier = childrenOf(node).find(({ name }) => name === "AggregateModifier");
    const grouped = modifier === undefined ? [] : all(modifier, "LabelName").map(text);
    for (const label of grouped) if (!inner.has(label)) faults.push(`there is no label ${label} to group by`);
    return new Set(grouped);
  }

  function labelsOfBoth(node: Node, left: ReadonlySet<string>, right: ReadonlySet<string>): ReadonlySet<string> {
    if (childrenOf(node).some(({ name }) => name === "Or")) return left.intersection(right);
    if (left.symmetricDifference(right).size > 0) faults.push(`the sides of ${text(node)} have different labels`);
    return left;
  }

  const { topNode } = parser.parse(expression);
  if (all(topNode, "⚠").length > 0) faults.push(`a syntax error in ${expression}`);
  return { faults, labels: labelsOf(topNode) ?? new Set<string>() };
}
